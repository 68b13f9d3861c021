// SPDX-License-Identifier: Apache-2.0
// See far_opens.h.
#include "proxy/modules/smb/smb2/far_opens.h"

#include <algorithm>

#include "proxy/modules/smb/smb2/attribute_life.h"
#include "proxy/modules/smb/smb2/look.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {
namespace {

// Offset of the oplock in a CREATE's response, from the end of its header (2.2.14).
constexpr std::size_t kOplockAt = 2;

// Recognises two spellings of one name; oplocks protect against others.
bool same_name(const FileName& a, const FileName& b) { return a.tree == b.tree && a.path == b.path; }

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

void FarOpens::listed(const OpenKey& directory, MessageId listing, std::uint8_t info_class,
                      const Slice& entries) {
  const Open* open = side_.connection().open(directory);
  if (!open) return;
  missed_looks_ = 0;
  row_.listed(*open, listing, info_class, entries.bytes());
  if (has_looked_) looks_.listed(*open, listing, info_class, entries.bytes());
}

// ---- the client's requests

Taken FarOpens::on_request(TimePoint now, const Message& message, const Changes&) {
  const Header& header = message.header();
  unused_.let_go_of_unsent(now);
  if (!message.single()) looked(message);
  if (message.single() && header.command == Command::read)
    read(side_.connection().open(named_file(message.first()).value_or(FileId{})));
  if (message.single() && header.command == Command::query_info)
    if (const auto query = parse_query_info_request(message.first().bytes)) row_.asked(*query);
  if (message.single() && header.command == Command::create) {
    const Pending* pending = side_.connection().pending(header.message_id);
    const auto create = parse_create_request(message.first().bytes);
    const auto plain = create ? plain_open(header, *create) : std::nullopt;
    if (plain && pending && pending->opening && !side_.connection().sessions().any_untouchable()) {
      const OpeningRow::Opened asked{*plain, header.session_id, header.tree_id, pending->opening->name};
      const auto number = header.charge() == 1 ? opens_.fitting(asked) : std::nullopt;
      const bool is_offered = number && opens_.find(*number)->state == State::offered;
      if (is_offered) {
        give_to(now, *number, message);
      } else if (number) {
        opens_.wait_for(*number, message);
      }
      row_.opened(asked);
      if (is_offered) {
        go_on(now);
      } else if (number || !creates_.full()) {
        creates_.add(header.message_id);
      }
      if (number) return Taken::yes;
    }
  }
  meet(now, message);
  return Taken::no;
}

// The client reads a file.
void FarOpens::read(const Open* open) {
  row_.read();
  if (open) looks_.read_beside(open->name);
}

// The server answers: our open is not known to the near half yet, or may not be used. The look does not wait
// for ours, which may have to wait for another client's oplock: a look never has to.
void FarOpens::looked(const Message& message) {
  const Header& header = message.header();
  if (header.command != Command::create || side_.connection().sessions().any_untouchable()) return;
  const Pending* pending = side_.connection().pending(header.message_id);
  const auto look = pending && pending->opening ? look_in(message) : std::nullopt;
  if (!look) return;
  has_looked_ = true;
  const OpeningRow::Opened asked{*look, header.session_id, header.tree_id, pending->opening->name};
  if (const auto number = opens_.fitting(asked)) {
    Ahead& ahead = *opens_.find(*number);
    ++missed_looks_;
    if (ahead.state == State::offered) {
      looks_.wasted();
      take_back(*number);
    } else {
      ahead.unwanted = true;
    }
  }
  looks_.opened(asked);
  if (!creates_.full()) creates_.add(header.message_id);
}

// Our own opens must not hinder the client's request.
void FarOpens::meet(TimePoint now, const Message& message) {
  if (opens_.size() == 0) return;
  std::vector<Number> unwanted;
  const bool all = unsettles_names(message);
  for (const auto& [number, ahead] : opens_.all()) {
    bool met = all;
    for (const Element& element : message.elements) {
      const Pending* request = side_.connection().pending(element.header.message_id);
      if (!request || !request->opening) continue;
      const Open& opening = *request->opening;
      if (!only_looks(opening)) {
        met = met || same_name(opening.name, ahead.name);
      } else if (opening.access & access::write_attributes) {
        // What we know of a file must not be older than a change of its attributes by the client. No oplock
        // protects against that under another name.
        met = met || may_be_same_file(*opening.group, *side_.connection().group_of(ahead.name));
      }
    }
    if (met) unwanted.push_back(number);
  }
  for (const Number number : unwanted)
    if (Ahead* ahead = opens_.find(number)) want_no_more(now, number, *ahead);
}

void FarOpens::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || each.request.command != Command::create) continue;
    if (each.element && each.element->header.status == Status::success) continue;  // after_response()
    creates_.failed(each.request.id);
  }
}

void FarOpens::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || each.request.command != Command::create) continue;
    RowCreates::Done done = creates_.opened(each.request.id);
    if (done.questions) row_.expects(std::move(*done.questions));
    if (done.in_row) go_on(now);
  }
}

// ---- opening

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

// ---- ends

void FarOpens::want_no_more(TimePoint now, Number number, Ahead& ahead) {
  switch (ahead.state) {
    case State::opening:
      // A CREATE that waits for it arrived first, and makes it the client's.
      if (ahead.waiting) return;
      ahead.unwanted = true;
      // One for a look may have to wait for another client's oplock, or for one of this client, whose
      // acknowledgement would wait, too. If the server opens ours first, its break is answered by our CLOSE.
      if (!ahead.asked.is_look()) hold_behind(number, ahead);
      return;
    case State::offered:
      side_.out().tell(Revoke{number});
      return close(now, number);
    case State::taken_back:
      return close(now, number);
  }
}

void FarOpens::hold_behind(Number number, Ahead& ahead) {
  if (!std::exchange(ahead.holds, true)) side_.hold_behind(number, ahead.name);
}

void FarOpens::take_back(Number number) {
  opens_.find(number)->state = State::taken_back;
  side_.out().tell(Revoke{number});
}

void FarOpens::on_noticed(const Open& open) {
  const auto number = opens_.of_file(open.file);
  if (!number || opens_.find(*number)->state != State::offered) return;
  if (opens_.find(*number)->asked.is_look()) looks_.wasted();
  take_back(*number);
}

void FarOpens::close(TimePoint now, Number number) {
  Ahead ahead = opens_.remove(number);
  if (Open* open = side_.connection().open(ahead.key)) {
    open->closing = true;
    side_.drop(now, *open);
  }
  hold_behind(number, ahead);
  unused_.close(now, number,
                {.session = ahead.session, .tree = ahead.tree, .file = ahead.file, .bytes = ahead.bytes});
}

Taken FarOpens::on_response(TimePoint, const Message& message, const Connection::Outcome&) {
  if (!message.single() || !message.header().is_unsolicited()) return Taken::no;
  const auto notification = parse_break(message.first().bytes);
  const auto* oplock = notification ? std::get_if<OplockBreak>(&*notification) : nullptr;
  if (!oplock) return Taken::no;
  if (unused_.has(oplock->file)) return Taken::yes;
  const auto number = opens_.of_file(oplock->file);
  if (!number) return Taken::no;
  if (opens_.find(*number)->state == State::offered) take_back(*number);
  opens_.find(*number)->broken = message;
  return Taken::yes;
}

// ---- the twin

Taken FarOpens::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  if (const auto* took = std::get_if<Took>(&message)) {
    taken(now, took->number);
    return Taken::yes;
  }
  if (const auto* given_up = std::get_if<GaveUp>(&message)) {
    // If it is not found, a CREATE of the client crossed this message, and has got the open.
    const Ahead* found = opens_.find(given_up->number);
    if (!found || found->state == State::opening) return Taken::yes;
    if (found->state == State::offered) side_.out().tell(Revoke{given_up->number});
    close(now, given_up->number);
    return Taken::yes;
  }
  if (const auto* used_bytes = std::get_if<Used>(&message)) read(side_.connection().open(used_bytes->open));
  if (const auto* asked = std::get_if<Asked>(&message)) read(side_.connection().open(asked->open));
  if (const auto* expect = std::get_if<Expect>(&message);
      expect && expect->command == static_cast<std::uint16_t>(Command::query_info)) {
    if (!creates_.expect(id_of(expect->message), expect->request))
      side_.out().abort();  // not sent by our near half
  }
  return Taken::no;
}

void FarOpens::taken(TimePoint now, Number number) {
  const Ahead* found = opens_.find(number);
  // Otherwise the client has an open that does not exist.
  if (!found || found->state == State::opening) return side_.out().abort();
  const OpeningRow::Opened opened{found->asked, found->session, found->tree, found->name};
  OpeningRow& row = row_of(found->asked);
  row.used();
  row.opened(opened);
  if (opened.open.is_look()) {
    missed_looks_ = 0;
    side_.out().tell(Revoke{number});
    close(now, number);
    return go_on(now);
  }
  const Ahead ahead = opens_.remove(number);
  go_on(now);
  if (ahead.broken) side_.on_with(now, *ahead.broken);
}

// ---- time

void FarOpens::on_timeout(TimePoint now) {
  bool is_wasted = false, looks_wasted = false;
  for (const Number number : opens_.expired(now)) {
    (opens_.find(number)->asked.is_look() ? looks_wasted : is_wasted) = true;
    take_back(number);
  }
  // The near half no longer gives it out, so no client has it, or a client with it is reset.
  if (const auto alone_at = out_of_contact(side_.surroundings()); alone_at && now >= *alone_at)
    for (const Number number : opens_.taken_back()) close(now, number);
  for (auto [wasted, row] : {std::pair{is_wasted, &row_}, std::pair{looks_wasted, &looks_}}) {
    if (!wasted) continue;
    row->wasted();
    row->none_given_out();
  }
}

std::optional<TimePoint> FarOpens::next_timeout() const {
  std::optional<TimePoint> first = opens_.next_expiry();
  if (const auto alone_at = out_of_contact(side_.surroundings());
      alone_at && (!first || *alone_at < *first) && !opens_.taken_back().empty())
    first = alone_at;
  return first;
}

void FarOpens::on_ids_freed(TimePoint now) {
  unused_.on_ids_freed(now);
  if (std::exchange(starved_, false)) go_on(now);
}

// What is offered is closed with the connection.
void FarOpens::stream_ended(TimePoint) { ended_ = true; }

}  // namespace longhaul::smb::smb2
