// SPDX-License-Identifier: Apache-2.0
// See far_opens.h.
#include "proxy/modules/smb/smb2/far_opens.h"

#include "proxy/modules/ahead/read_ahead.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {
namespace {

// Where a CREATE's answer has its oplock, from the end of its header (2.2.14).
constexpr std::size_t kOplockAt = 2;

std::string bytes_of(const std::u16string& text) {
  std::string bytes;
  for (const char16_t letter : text) {
    bytes.push_back(static_cast<char>(letter & 0xff));
    bytes.push_back(static_cast<char>(letter >> 8));
  }
  return bytes;
}

// Two spellings of one name that we can recognise; oplocks protect against others.
bool same_name(const FileName& a, const FileName& b) { return a.tree == b.tree && a.path == b.path; }

Slice body_of(const Message& message) { return Slice::copy_of(message.first().body()); }

// The client's view: it requested no oplock.
Slice without_oplock(const Slice& body) {
  Buffer copy;
  append(copy, body.bytes());
  if (copy.size() > kOplockAt) copy[kOplockAt] = std::byte{0};
  return Slice::copy_of(copy);
}

}  // namespace

void FarOpens::listed(const OpenKey& directory, std::uint64_t listing, std::uint8_t info_class,
                      const Slice& entries) {
  if (const Open* open = side_.connection().open(directory))
    row_.listed(*open, listing, info_class, entries.bytes());
}

// ---- the client's requests

Taken FarOpens::on_request(TimePoint now, const Message& message, const Changes&) {
  const Header& header = message.header();
  let_go_of_unsent(now);
  if (message.single() && header.command == Command::read) row_.read();
  if (message.single() && header.command == Command::query_info)
    if (const auto query = parse_query_info_request(message.first().bytes)) row_.asked(*query);
  if (message.single() && header.command == Command::create) {
    const Pending* pending = side_.connection().pending(header.message_id);
    const auto create = parse_create_request(message.first().bytes);
    const auto plain = create ? plain_open(header, *create) : std::nullopt;
    if (plain && pending && pending->opening && !side_.connection().sessions().any_untouchable()) {
      const OpeningRow::Opened asked{*plain, header.session_id, header.tree_id, pending->opening->name};
      for (auto ahead = opens_.begin(); ahead != opens_.end(); ++ahead) {
        Ahead& open = ahead->second;
        if (open.session != asked.session || open.tree != asked.tree || open.asked != *plain) continue;
        if (open.state == State::offered && header.charge() == 1) {
          give_to(now, ahead, message);
          row_.opened(asked);
          go_on(now);
          return Taken::yes;
        }
        if (open.state == State::opening && !open.unwanted && !open.waiting && header.charge() == 1) {
          open.waiting = message;
          ++waiting_;
          row_.opened(asked);
          asked_.insert_or_assign(header.message_id, asked);
          return Taken::yes;
        }
      }
      row_.opened(asked);
      if (asked_.size() < kMostAsked) asked_.insert_or_assign(header.message_id, asked);
    }
  }
  meet(now, message);
  return Taken::no;
}

// Our own opens must not hinder the client's request.
void FarOpens::meet(TimePoint now, const Message& message) {
  if (opens_.empty()) return;
  std::vector<Number> unwanted;
  const bool all = unsettles_names(message);
  for (const auto& [number, ahead] : opens_) {
    bool met = all;
    for (const Element& element : message.elements) {
      const Pending* request = side_.connection().pending(element.header.message_id);
      if (!request || !request->opening || only_looks(*request->opening)) continue;
      met = met || same_name(request->opening->name, ahead.name);
    }
    if (met) unwanted.push_back(number);
  }
  for (const Number number : unwanted)
    if (const auto found = opens_.find(number); found != opens_.end())
      want_no_more(now, number, found->second);
}

void FarOpens::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || each.request.command != Command::create) continue;
    if (each.element && each.element->header.status == Status::success) continue;  // after_response()
    asked_.erase(each.request.id);
    expected_.erase(each.request.id);
  }
}

void FarOpens::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || each.request.command != Command::create) continue;
    if (auto expected = expected_.extract(each.request.id);
        !expected.empty() && asked_.contains(each.request.id))
      row_.expects(std::move(expected.mapped()));
    if (asked_.erase(each.request.id) != 0) go_on(now);
  }
}

// ---- opening

std::uint64_t FarOpens::most_bytes() const {
  const Surroundings& line = side_.surroundings();
  return limits_for(static_cast<double>(line.line_bytes_per_second),
                    std::chrono::duration<double>(line.round_trip).count(), kCreditBytes)
      .window_bytes;
}

std::uint64_t FarOpens::bytes_of(std::uint64_t size) const {
  const Surroundings& line = side_.surroundings();
  const ReadAheadLimits limits =
      limits_for(static_cast<double>(line.line_bytes_per_second),
                 std::chrono::duration<double>(line.round_trip).count(), kCreditBytes);
  constexpr std::uint64_t kAnswerBytes = 512;
  return kAnswerBytes + (size <= limits.whole_file_bytes ? size : limits.first_bytes);
}

bool FarOpens::known(const FileName& name) {
  // Files being opened, or open, including ours.
  const FileGroupRef file = side_.connection().group_of(name);
  return file->count(&FileCounts::opens) != 0 || file->count(&FileCounts::opening) != 0 ||
         side_.contended(name);
}

void FarOpens::go_on(TimePoint now) {
  if (ended_ || !row_.goes_on()) return;
  if (!side_.surroundings().features.metadata || side_.connection().sessions().any_untouchable()) return;
  const std::uint64_t most = most_bytes();
  std::uint64_t ahead = 0;
  for (const auto& [number, open] : opens_) ahead += open.bytes;
  while (opens_.size() < OpeningRow::kMostAhead) {
    const NextFiles::File* file = row_.next();
    if (!file) return;
    ahead += bytes_of(file->size);
    if (ahead > most) return;
    if (!side_.can_inject(1) || !open(now, *file)) {
      starved_ = true;
      return;
    }
    row_.given_out();
  }
}

// True: it is being opened, or must not be.
bool FarOpens::open(TimePoint now, const NextFiles::File& file) {
  const OpeningRow::Opened& last = *row_.last();
  Ahead ahead{.session = last.session,
              .tree = last.tree,
              .asked = last.open,
              .name = {},
              .questions = row_.questions()};
  ahead.asked.name = std::string(last.open.folder()) + smb2::bytes_of(file.name);
  auto request = request_of(ahead.asked);
  if (!request) return true;
  ahead.name = file_name_of(ahead.tree, *request, Header{});
  ahead.bytes = bytes_of(file.size);
  if (!plain_open(Header{}, *request) || known(ahead.name)) return true;
  request->oplock = OplockLevel::batch;
  const Number number = next_number_++;
  const PlainOpen asked = ahead.asked;
  const bool sent = side_.inject_open(
      now, ahead.session, ahead.tree,
      [&request](const RequestHead& head) { return build_create_request(head, *request); }, ahead.questions,
      [this, number](TimePoint then, const Message& answer, const Connection::Outcome& outcome) {
        answered(then, number, answer, outcome);
      });
  if (sent) opens_.emplace(number, std::move(ahead));
  return sent;
}

void FarOpens::answered(TimePoint now, Number number, const Message& answer,
                        const Connection::Outcome& outcome) {
  const auto found = opens_.find(number);
  if (found == opens_.end()) return;
  Ahead& ahead = found->second;
  Open* open = nullptr;
  for (const Change& change : outcome.changes)
    if (change.kind == Change::Kind::opened) open = change.open;
  if (!open) {
    // The server itself must report any error of the file to the client.
    const auto waiting = std::move(ahead.waiting);
    opens_.erase(found);
    row_.wasted();
    if (waiting) {
      --waiting_;
      side_.answer(
          now, waiting->header(),
          build_message(answer_to(waiting->header(), answer.header().status), answer.first().body()));
    }
    side_.let_go(now, number);
    return;
  }
  ahead.file = open->file;
  ahead.key = open->key;
  ahead.response = without_oplock(body_of(answer));
  open->on_behalf = open->oplock != OplockLevel::none;
  const auto& features = side_.surroundings().features;
  const bool watched = features.metadata_relaxed || side_.watch(now, *open) == Watching::now;
  const bool alone = (open->caching & lease_state::write) && (open->caching & lease_state::handle);
  if (!alone) open->caching = lease_state::none;  // as in far_oplocks.cc
  if (ahead.waiting) {
    const Message request = std::move(*ahead.waiting);
    ahead.waiting.reset();
    --waiting_;
    const Held held{ahead.key, static_cast<std::uint8_t>(open->oplock)};
    side_.answer(now, request.header(),
                 build_message(answer_to(request.header(), Status::success), ahead.response.bytes()));
    if (alone) side_.out().tell(held);
    opens_.erase(number);
    return;
  }
  if (alone && watched) {
    row_.granted();
  } else {
    row_.refused();
  }
  by_file_[ahead.file] = number;
  if (ahead.unwanted || ended_ || !alone || !watched || !open->disk_file) {
    if (!ahead.unwanted) row_.wasted();
    return close(now, number, ahead);
  }
  offer(now, number, ahead);
}

void FarOpens::offer(TimePoint now, Number number, Ahead& ahead) {
  ahead.state = State::offered;
  ahead.since = now;
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

// The near half has got it with the offer, or gets it before this answer, and reports further changes itself.
void FarOpens::give_to(TimePoint now, Opens::iterator found, const Message& request) {
  const Slice response = found->second.response;
  by_file_.erase(found->second.file);
  opens_.erase(found);
  row_.used();
  side_.answer(now, request.header(),
               build_message(answer_to(request.header(), Status::success), response.bytes()));
}

// ---- ends

void FarOpens::want_no_more(TimePoint now, Number number, Ahead& ahead) {
  switch (ahead.state) {
    case State::opening:
      // A CREATE that waits for it came first, and makes it the client's.
      if (ahead.waiting || ahead.unwanted) return;
      ahead.unwanted = true;
      side_.hold_behind(number, ahead.name);
      return;
    case State::offered:
      side_.out().tell(Revoke{number});
      return close(now, number, ahead);
    case State::taken_back:
      return close(now, number, ahead);
    case State::closing:
      return;
  }
}

void FarOpens::take_back(Number number, Ahead& ahead) {
  ahead.state = State::taken_back;
  side_.out().tell(Revoke{number});
}

void FarOpens::on_noticed(const Open& open) {
  const auto number = by_file_.find(open.file);
  if (number == by_file_.end()) return;
  Ahead& ahead = opens_.at(number->second);
  if (ahead.state == State::offered) take_back(number->second, ahead);
}

void FarOpens::close(TimePoint now, Number number, Ahead& ahead) {
  ahead.state = State::closing;
  if (Open* open = side_.connection().open(ahead.key)) {
    open->closing = true;
    side_.drop(now, *open);
  }
  if (!ahead.unwanted) side_.hold_behind(number, ahead.name);
  send_close(now, number, ahead);
  let_go_of_unsent(now);
}

// No request of ours goes to the server any more: nothing may wait for one.
void FarOpens::let_go_of_unsent(TimePoint now) {
  if (opens_.empty() || !side_.connection().sessions().any_untouchable()) return;
  for (const auto& [number, ahead] : opens_)
    if (ahead.state == State::closing && !ahead.close_sent) side_.let_go(now, number);
}

void FarOpens::send_close(TimePoint now, Number number, Ahead& ahead) {
  const CloseRequest request{.file = ahead.file};
  ahead.close_sent = side_.inject_close(
      now, ahead.session, ahead.tree,
      [request](const RequestHead& head) { return build_close_request(head, request); },
      [this, number](TimePoint then, const Message&, const Connection::Outcome&) {
        if (const auto found = opens_.find(number); found != opens_.end()) {
          by_file_.erase(found->second.file);
          opens_.erase(found);
        }
        side_.let_go(then, number);
      });
}

Taken FarOpens::on_response(TimePoint, const Message& message, const Connection::Outcome&) {
  if (by_file_.empty() || !message.single() || !message.header().is_unsolicited()) return Taken::no;
  const auto notification = parse_break(message.first().bytes);
  const auto* oplock = notification ? std::get_if<OplockBreak>(&*notification) : nullptr;
  const auto number = oplock ? by_file_.find(oplock->file) : by_file_.end();
  if (number == by_file_.end()) return Taken::no;
  Ahead& ahead = opens_.at(number->second);
  if (ahead.state == State::offered) take_back(number->second, ahead);
  if (ahead.state == State::taken_back) ahead.broken = message;
  return Taken::yes;  // the CLOSE of what is closing is the acknowledgement
}

// ---- the twin

Taken FarOpens::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  if (const auto* took = std::get_if<Took>(&message)) {
    const auto found = opens_.find(took->number);
    const bool given = found != opens_.end() &&
                       (found->second.state == State::offered || found->second.state == State::taken_back);
    if (!given) {
      side_.out().abort();  // the client has an open that does not exist
      return Taken::yes;
    }
    const Ahead ahead = std::move(found->second);
    by_file_.erase(ahead.file);
    opens_.erase(found);
    row_.used();
    row_.opened({ahead.asked, ahead.session, ahead.tree, ahead.name});
    go_on(now);
    if (ahead.broken) side_.on_with(now, *ahead.broken);
    return Taken::yes;
  }
  if (const auto* given_up = std::get_if<GaveUp>(&message)) {
    const auto found = opens_.find(given_up->number);
    if (found == opens_.end()) return Taken::yes;
    const State state = found->second.state;
    if (state == State::offered || state == State::taken_back) close(now, given_up->number, found->second);
    return Taken::yes;
  }
  if (std::holds_alternative<Used>(message) || std::holds_alternative<Asked>(message)) row_.read();
  if (const auto* expect = std::get_if<Expect>(&message);
      expect && expect->command == static_cast<std::uint16_t>(Command::query_info)) {
    const auto question = smb2::request_of(expect->request.bytes());
    if (expected_.size() >= kMostOpening) side_.out().abort();  // not sent by our near half
    std::vector<Slice>& questions = expected_[expect->message];
    if (question && question->type == InfoType::file && questions.size() < OpeningRow::kMostQuestions)
      questions.push_back(expect->request);
  }
  return Taken::no;
}

// ---- time

void FarOpens::on_timeout(TimePoint now) {
  bool any = false;
  for (auto& [number, ahead] : opens_) {
    if (ahead.state != State::offered || now - ahead.since < kLife) continue;
    take_back(number, ahead);
    any = true;
  }
  // The near half no longer gives it out, so no client has it, or a client with it is reset.
  if (const auto alone_at = out_of_contact(side_.surroundings()); alone_at && now >= *alone_at)
    for (auto& [number, ahead] : opens_)
      if (ahead.state == State::taken_back) close(now, number, ahead);
  if (!any) return;
  row_.wasted();
  row_.none_given_out();
}

std::optional<TimePoint> FarOpens::next_timeout() const {
  std::optional<TimePoint> first;
  for (const auto& [number, ahead] : opens_)
    if (ahead.state == State::offered && (!first || ahead.since + kLife < *first))
      first = ahead.since + kLife;
  const bool any_taken_back = std::any_of(
      opens_.begin(), opens_.end(), [](const auto& each) { return each.second.state == State::taken_back; });
  if (const auto alone_at = out_of_contact(side_.surroundings());
      any_taken_back && alone_at && (!first || *alone_at < *first))
    first = alone_at;
  return first;
}

void FarOpens::on_ids_freed(TimePoint now) {
  std::vector<Number> unsent;
  for (const auto& [number, ahead] : opens_)
    if (ahead.state == State::closing && !ahead.close_sent) unsent.push_back(number);
  for (const Number number : unsent)
    if (const auto found = opens_.find(number); found != opens_.end()) send_close(now, number, found->second);
  if (std::exchange(starved_, false)) go_on(now);
}

// What is offered is closed with the connection.
void FarOpens::stream_ended(TimePoint) { ended_ = true; }

}  // namespace longhaul::smb::smb2
