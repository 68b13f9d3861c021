// SPDX-License-Identifier: Apache-2.0
// Which opens are made ahead, how many, and what is offered of each; see far_opens.h.
#include <algorithm>

#include "proxy/modules/smb/smb2/attribute_life.h"
#include "proxy/modules/smb/smb2/far_opens.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {
namespace {

// Offset of the oplock in a CREATE's response, from the end of its header (2.2.14).
constexpr std::size_t kOplockAt = 2;

// The approximate cost of an open on the line, together with the data that is read ahead with it.
std::uint64_t bytes_with(const PlainOpen& open, const NextFiles::File& file, const ReadAheadLimits& line) {
  constexpr std::uint64_t kAnswerBytes = 512;
  if (open.is_look()) return kAnswerBytes;
  return kAnswerBytes + (file.size <= line.whole_file_bytes ? file.size : line.first_bytes);
}

Slice body_of(const Message& message) { return Slice::copy_of(message.first().body()); }

// As the client must see it: it requested no oplock.
Slice without_oplock(const Slice& body) {
  Buffer copy;
  append(copy, body.bytes());
  if (copy.size() > kOplockAt) copy[kOplockAt] = std::byte{0};
  return Slice::copy_of(copy);
}

}  // namespace

ReadAheadLimits FarOpens::limits_of_line() const {
  const Surroundings& line = side_.surroundings();
  return limits_for(static_cast<double>(line.line_bytes_per_second),
                    std::chrono::duration<double>(line.round_trip).count(), kCreditBytes);
}

// Relaxed, others' changes are not noticed: the near half uses no older answer.
modules::Duration FarOpens::life_of(const PlainOpen& asked) const {
  const bool is_short = asked.is_look() && side_.surroundings().features.metadata_relaxed;
  return is_short ? kSharedLife : OpensAhead::kLife;
}

// Those that a client that takes a round trip for each can use in the first half of their time.
std::size_t FarOpens::most_looks() const {
  if (looks_.last() == std::nullopt) return 0;
  const auto round_trip =
      std::max<modules::Duration>(side_.surroundings().round_trip, std::chrono::milliseconds(1));
  const auto most = static_cast<std::size_t>(life_of(looks_.last()->open) / (2 * round_trip));
  return std::clamp<std::size_t>(most, 2, kMostLooks);
}

bool FarOpens::known(const FileName& name) {
  // Files being opened, or open, including ours.
  const FileGroupRef file = side_.connection().group_of(name);
  return file->count(&FileCounts::opens) != 0 || file->count(&FileCounts::opening) != 0 ||
         side_.contended(name);
}

void FarOpens::go_on(TimePoint now) {
  go_on(now, row_);
  go_on(now, looks_);
}

void FarOpens::go_on(TimePoint now, OpeningRow& row) {
  if (ended_ || !row.goes_on() || side_.connection().opens().size() >= kMostOpens) return;
  const bool for_looks = &row == &looks_;
  if (for_looks && missed_looks_ >= kMostMissed) return;
  if (!side_.surroundings().features.metadata || side_.connection().sessions().any_untouchable()) return;
  const ReadAheadLimits line = limits_of_line();
  std::uint64_t bytes = opens_.bytes() + unused_.bytes();
  while (opens_.size() + unused_.size() < OpeningRow::kMostAhead) {
    if (for_looks && opens_.looks() >= most_looks()) return;
    const NextFiles::File* file = row.next();
    if (!file) return;
    bytes += bytes_with(row.last()->open, *file, line);
    if (bytes > line.window_bytes) return;
    if (!side_.server().can_inject(1) || !open(now, row, *file)) {
      starved_ = true;
      return;
    }
    row.given_out();
  }
}

// Returns true if it is being opened, or must not be.
bool FarOpens::open(TimePoint now, const OpeningRow& row, const NextFiles::File& file) {
  const OpeningRow::Opened& last = *row.last();
  Ahead ahead{
      .session = last.session,
      .tree = last.tree,
      .asked = last.open,
      .name = {},
      .questions = last.open.is_look() ? questions_in(as_bytes(*last.open.queries)) : row.questions()};
  ahead.asked.name = std::string(last.open.folder()).append(as_text(utf16_of(file.name).bytes()));
  auto request = request_of(ahead.asked);
  if (!request) return true;
  ahead.name = file_name_of(ahead.tree, *request, Header{});
  ahead.bytes = bytes_with(ahead.asked, file, limits_of_line());
  if (ahead.asked.is_look()) {
    if (!looking_open(Header{}, *request)) return true;
    // Only an open that may read gets an oplock; it excludes nobody.
    request->desired_access |= access::read_data;
    request->share_access = share_access::read | share_access::write | share_access::delete_file;
  } else if (!plain_open(Header{}, *request)) {
    return true;
  }
  if (known(ahead.name)) return true;
  request->oplock = OplockLevel::batch;
  const Number number = opens_.next_number();
  const bool sent = side_.inject_open(
      now, ahead.session, ahead.tree,
      [&request](const RequestHead& head) { return build_create_request(head, *request); }, ahead.questions,
      [this, number](TimePoint then, const Message& answer, const Connection::Outcome& outcome) {
        answered(then, number, answer, outcome);
      });
  if (sent) opens_.add(number, std::move(ahead));
  return sent;
}

void FarOpens::answered(TimePoint now, Number number, const Message& answer,
                        const Connection::Outcome& outcome) {
  Ahead* const found = opens_.find(number);
  if (!found) return;
  Ahead& ahead = *found;
  OpeningRow& row = row_of(ahead.asked);
  Open* open = nullptr;
  for (const Change& change : outcome.changes)
    if (change.kind == Change::Kind::opened) open = change.open;
  if (!open) {
    // Any error of the file must be reported to the client by the server itself.
    // A client that may look at a file may not be allowed to read it, nor the next one.
    if (ahead.asked.is_look()) row.refused();
    row.wasted();
    const auto waiting = opens_.remove(number).waiting;
    if (waiting) {
      side_.answer(
          now, waiting->header(),
          build_message(answer_to(waiting->header(), answer.header().status), answer.first().body()));
    }
    side_.let_go(now, number);
    return;
  }
  opens_.opened(number, *open);
  ahead.response = without_oplock(body_of(answer));
  open->on_behalf = open->oplock != OplockLevel::none;
  if (ahead.asked.is_look()) open->access &= ~access::read_data;  // nothing is read through it
  const auto& features = side_.surroundings().features;
  const bool watched = features.metadata_relaxed || side_.watch(now, *open) == Watching::now;
  const bool alone = (open->caching & lease_state::write) && (open->caching & lease_state::handle);
  if (!alone) open->caching = lease_state::none;  // as in far_oplocks.cc
  if (const auto request = opens_.take_waiting(number)) {
    const Held held{ahead.key, static_cast<std::uint8_t>(open->oplock)};
    side_.answer(now, request->header(),
                 build_message(answer_to(request->header(), Status::success), ahead.response.bytes()));
    if (alone) side_.out().tell(held);
    opens_.remove(number);
    return;
  }
  if (alone && watched) {
    row.granted();
  } else {
    row.refused();
  }
  if (ahead.unwanted || ended_ || !alone || !watched || !open->disk_file) {
    if (!ahead.unwanted) row.wasted();
    return close(now, number);
  }
  opens_.offered(number, now + life_of(ahead.asked));
  offer(number, ahead);
}

void FarOpens::offer(Number number, const Ahead& ahead) {
  side_.out().tell(Offer{.number = number,
                         .open = ahead.key,
                         .request = encode(ahead.asked),
                         .questions = joined(ahead.questions),
                         .response_bytes = static_cast<std::uint32_t>(ahead.response.size())},
                   ahead.response);
  side_.out().tell(Held{ahead.key, static_cast<std::uint8_t>(OplockLevel::batch)});
  const Open* open = side_.connection().open(ahead.key);
  if (open && open->watched) side_.out().tell(Watched{ahead.key, true});
}

// The near half has received it with the offer, or receives it before this response, and reports further
// changes itself.
void FarOpens::give_to(TimePoint now, Number number, const Message& request) {
  const Slice response = opens_.remove(number).response;
  row_.used();
  side_.answer(now, request.header(),
               build_message(answer_to(request.header(), Status::success), response.bytes()));
}

}  // namespace longhaul::smb::smb2
