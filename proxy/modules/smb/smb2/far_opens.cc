// SPDX-License-Identifier: Apache-2.0
// The requests of the client, and how opens made ahead end; see far_opens.h. far_opens_opening.cc makes them.
#include "proxy/modules/smb/smb2/far_opens.h"

#include <utility>

#include "proxy/modules/smb/smb2/look.h"

namespace longhaul::smb::smb2 {
namespace {

// Recognises two spellings of one name; oplocks protect against others.
bool same_name(const FileName& a, const FileName& b) { return a.tree == b.tree && a.path == b.path; }

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
