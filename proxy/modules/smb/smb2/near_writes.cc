// SPDX-License-Identifier: Apache-2.0
// See near_writes.h.
#include "proxy/modules/smb/smb2/near_writes.h"

#include <algorithm>

#include "proxy/modules/smb/smb2/may_be_promised.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::int64_t kMostExtraCredits = 64;  // in one early response

// Whether the response can report a failure of earlier writes.
bool tells_of_writes(Command command) {
  return command == Command::write || command == Command::flush || command == Command::close;
}

// The response in place of the server's, early or late.
Slice answer_of(const Header& head, std::uint32_t written_bytes) {
  if (head.status != Status::success) return build_error_response(head);
  return build_write_response(head, written_bytes);
}

}  // namespace

void NearWrites::before_request(TimePoint, const Message& message, const Changes&) {
  files_.on_request(message);
  for (const Element& element : message.elements) {
    const Command command = element.header.command;
    habits_.learn(element, policy_);
    if (command == Command::session_setup || command == Command::tree_connect || command == Command::logoff)
      if (setups_.size() < Connection::kMostPending) setups_.insert(element.header.message_id);
  }
}

Taken NearWrites::on_request(TimePoint now, const Message& message, const Changes&) {
  if (!message.single()) return Taken::no;
  const Header& header = message.header();
  if (header.command == Command::write) return write(now, message);
  if (header.command == Command::cancel && !header.is_async()) {
    // It crossed our response: the server must not undo a write that was reported as completed.
    const auto found = waiting_.find(header.message_id);
    return found != waiting_.end() && found->second.answered ? Taken::yes : Taken::no;
  }
  if (header.command == Command::read && promises_.waiting() != 0) {
    const Pending* request = side_.connection().pending(header.message_id);
    const Open* open = request ? side_.connection().open(request->file) : nullptr;
    if (!open || open->group->count(&FileCounts::promised) == 0) return Taken::no;
    side_.pass_on(now, message);
    return Taken::yes;
  }
  return Taken::no;
}

Taken NearWrites::write(TimePoint now, const Message& message) {
  if (!side_.surroundings().features.write_behind || !setups_.empty() || doomed_ || stops_) return Taken::no;
  // Its mark would have the old name at one of the halves.
  if (files_.may_be_misnamed()) return Taken::no;
  const auto request = parse_write_request(message.first().bytes);
  if (!request) return Taken::no;
  const Header& header = message.header();
  Open* open = side_.connection().open(request->file);
  if (!open || open->session != header.session_id || open->tree != header.tree_id) return Taken::no;
  const Tree* tree = side_.connection().tree(open->session, open->tree);
  if (!tree || !may_be_promised(*open, *tree, header, *request, side_.connection().negotiated()))
    return Taken::no;
  if (!policy_allows(*open)) return Taken::no;
  const auto length = static_cast<std::uint32_t>(request->data.size());
  const DiskTree disk = disk_tree(open->session, open->tree);
  const auto marked = live_.is_marked(open->key);
  if (!marked.value_or(true)) {
    policy_.declines(*open, reasons::smb_not_recorded, side_.counters());
    return Taken::no;
  }
  const bool known = room_.knows(disk) && marked;
  if (room_.knows(disk) && !room_.has_room(disk, length)) return Taken::no;
  if (!known && undecided_.is_full()) return Taken::no;

  if (promises_.outstanding_bytes() == 0) live_.moved(now);
  const auto verdict = promises_.promise(
      open->key, number_of(header.message_id), {.offset = request->offset, .length = length},
      known ? Promises::Conditions::fulfilled : Promises::Conditions::open_question);
  if (verdict == Promises::Verdict::refused) return Taken::no;
  room_.promised(disk, length);
  if (!known) undecided_.hold(number_of(header.message_id), open->key);
  side_.out().tell(Promised{.open = open->key, .message = number_of(header.message_id)});
  side_.pass_on(now, message);
  waiting_.insert_or_assign(
      header.message_id,
      Waiting{.header = header, .length = length, .promised = Counted(open->group, &FileCounts::promised)});
  if (verdict == Promises::Verdict::now) answer_early(now, header.message_id);
  count();
  return Taken::yes;
}

bool NearWrites::policy_allows(Open& open) {
  modules::Counters& counters = side_.counters();
  if (!policy_.allows(open, side_.surroundings().features, counters)) return false;
  if (lost_->live().has_unguarded(ends_)) return policy_.declines(open, reasons::smb_other_paths, counters);
  const auto bypassed = side_.may_be_bypassed(open.session);
  if (bypassed.value_or(false)) return policy_.declines(open, reasons::smb_other_paths, counters);
  // If that is not known yet, neither is the free space, which is reported later: the response waits for
  // both. If the client is just querying addresses, the server answers.
  return bypassed || !room_.knows(disk_tree(open.session, open.tree));
}

void NearWrites::answer_early(TimePoint now, MessageId id) {
  Waiting& write = waiting_.at(id);
  write.answered = true;
  Header answer = answer_to(write.header, Status::success);
  const auto extra = std::clamp<std::int64_t>(credits_due_, 0, kMostExtraCredits);
  answer.credits = static_cast<std::uint16_t>(answer.credits + extra);
  credits_due_ -= answer.credits;
  side_.counters().promised_bytes += write.length;
  side_.answer(now, id, answer_of(answer, write.length), NearSide::Told::yes);
}

void NearWrites::kept(TimePoint now, const Kept& kept) {
  const Status status{kept.status};
  const auto settled = promises_.kept(kept.message, status, kept.written);
  const auto found = waiting_.find(id_of(kept.message));
  if (!settled || found == waiting_.end()) return;
  live_.moved(now);
  const Waiting write = std::move(found->second);
  waiting_.erase(found);
  if (says_expired(status)) side_.connection().sessions().expire(settled->open.session);
  if (Open* open = side_.connection().open(settled->open); open && status == Status::success)
    open->confirm(settled->range.offset, std::min(write.length, kept.written));
  if (settled->answered) {
    credits_due_ += kept.credits;
    const Open* open = side_.connection().open(settled->open);
    if (open && (status != Status::success || kept.written < settled->range.length))
      lost_->refused(lost_file(*open), {settled->range.offset, settled->range.offset + settled->range.length},
                     static_cast<std::uint32_t>(status));
  } else {
    const bool is_news = promises_.unreported(settled->open);
    const Status final = promises_.settle(settled->open, status);
    if (const Open* open = is_news ? side_.connection().open(settled->open) : nullptr)
      lost_->told_late(lost_file(*open));
    Header answer = answer_to(write.header, final);
    answer.credits = kept.credits;
    side_.answer(now, id_of(kept.message), answer_of(answer, kept.written), NearSide::Told::by_server);
  }
  // Data read ahead while the server was still writing may be older than the written data.
  if (promises_.waiting(settled->open) == 0) {
    if (const Open* open = side_.connection().open(settled->open)) side_.drop_file(*open->group);
  }
  answer_held(now);
  count();
}

// Writes that must not be promised now are not promised later either, only because they waited here.
void NearWrites::answer_held(TimePoint now) {
  if (stops_ || files_.may_be_misnamed() || lost_->live().has_unguarded(ends_)) return;
  while (const auto message = promises_.poll_answerable()) answer_early(now, id_of(*message));
}

void NearWrites::mark(const Open& open) {
  const Features& features = side_.surroundings().features;
  if (policy_.may_allow(features) && (open.on_behalf || features.write_behind_cached))
    live_.mark(open.key, lost_file(open));
}

// Writes held for free space count as promised already.
void NearWrites::review_undecided(TimePoint now) {
  const bool any = undecided_.review(promises_, [&](const OpenKey& key) -> std::optional<bool> {
    const auto marked = live_.is_marked(key);
    const DiskTree disk = disk_tree(key.session, key.tree);
    if (marked.value_or(true) && (!marked || !room_.knows(disk))) return std::nullopt;
    return *marked && room_.has_room(disk, 0);
  });
  if (!any) return;
  answer_held(now);
  count();
}

void NearWrites::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  late_.clear();
  late_files_.clear();
  only_close_tells_ = false;
  files_.on_outcome(outcome);
  for (const Connection::Answered& each : outcome.answered) {
    if (!each.interim) setups_.erase(each.request.id);
    // Answered here, before the server: its own response may be the first to report an error.
    if (!each.interim && !each.element && each.request.command == Command::close)
      for (const auto& closed : outcome.closed)
        if (closed->group && closed->group->count(&FileCounts::writes) != 0)
          closing_.insert_or_assign(each.request.id,
                                    Closing{.file = lost_file(*closed), .end = closed->confirmed_bytes});
    if (!tells_of_writes(each.request.command) || each.interim || !each.element) continue;
    const Status status = each.element->header.status;
    const OpenKey key = key_of(each.request.session, each.request.tree, each.request.file);
    // An error that was not late: a client that caches writes stops there, too.
    if (each.request.command == Command::write && is_error(status) && side_.connection().open(key))
      promises_.stop(key);
    const bool is_news = promises_.unreported(key);
    const Status final = promises_.settle(key, status);
    if (final == status) continue;
    late_.push_back({.element = each.element, .status = final});
    if (!is_news) continue;
    only_close_tells_ |= each.request.command == Command::close;
    const Open* open = side_.connection().open(key);
    for (const auto& closed : outcome.closed)
      if (closed->key == key) open = closed.get();
    if (open) late_files_.push_back(lost_file(*open));
  }
  for (const Change& change : outcome.changes) {
    if (change.kind == Change::Kind::closed) ended(*change.open);
  }
  files_.on_done(side_.connection(), outcome);
  count();
}

Taken NearWrites::on_response(TimePoint, const Message& message, const Connection::Outcome&) {
  if (late_.empty()) return Taken::no;
  // Responses signed since then cannot be changed; then only a reset informs the client, and its next open of
  // the file.
  if (side_.connection().sessions().ids_are_fixed()) {
    for (const LostWrites::File& file : late_files_) lost_->add(file, {.cause = Cause::refused});
    side_.out().abort();
  } else {
    doomed_ |= only_close_tells_;
    for (const LostWrites::File& file : late_files_)
      lost_->told_late(file, only_close_tells_ ? Told::reset : Told::late_error);
    if (!only_close_tells_) side_.out().to_lan(with_statuses(message, late_));
  }
  late_.clear();
  return Taken::yes;
}

// Its CLOSE was answered, or its tree or session has ended. No response can report an error any more.
void NearWrites::ended(const Open& open) {
  for (const MessageNumber number : promises_.messages(open.key)) waiting_.erase(id_of(number));
  const LivePromises::Closed closed = live_.closed(open.key, lost_file(open));
  if (closed == LivePromises::Closed::settled) side_.out().tell(Settled{open.key});
  if (closed == LivePromises::Closed::lost) side_.out().abort();
}

std::optional<LostWrites::File> NearWrites::file_of(const OpenKey& key) {
  const Open* open = side_.connection().open(key);
  return open ? std::optional(lost_file(*open)) : std::nullopt;
}

Taken NearWrites::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  if (const auto* done = std::get_if<Kept>(&message)) {
    // Then the connection is reset (near_metadata.h).
    if (const auto closing = closing_.extract(id_of(done->message));
        !closing.empty() && Status{done->status} != Status::success)
      lost_->refused(closing.mapped().file, {0, std::max<std::uint64_t>(closing.mapped().end, 1)},
                     done->status);
    if (!waiting_.contains(id_of(done->message))) return Taken::no;
    kept(now, *done);
    return Taken::yes;
  }
  if (const auto* told = std::get_if<Room>(&message)) {
    if (!side_.connection().tree(told->session, told->tree)) return Taken::yes;
    room_.told(disk_tree(told->session, told->tree), told->available_bytes, told->counted_bytes);
    review_undecided(now);
    return Taken::yes;
  }
  if (const auto* marked = std::get_if<Marked>(&message)) {
    const Open* open = side_.connection().open(marked->open);
    if (!open || open->times_settled != marked->settled) return Taken::yes;
    live_.marked_at_twin(*marked);
    review_undecided(now);
    return Taken::yes;
  }
  // An oplock that the far half held on the client's behalf: all promises under it are in transit.
  if (const auto* taken_back = std::get_if<smb::Break>(&message)) {
    if (side_.connection().open(taken_back->open)) promises_.stop(taken_back->open);
    side_.out().tell(Broken{.open = taken_back->open});
  }
  return Taken::no;
}

void NearWrites::on_surroundings(TimePoint now, const Surroundings& surroundings) {
  promises_.set_line_rate(static_cast<double>(surroundings.line_bytes_per_second));
  review_undecided(now);
  answer_held(now);
}

void NearWrites::count() {
  const PromiseAudit& audit = promises_.audit();
  modules::Counters& counters = side_.counters();
  counters.promises_made = audit.made;
  counters.promises_kept = audit.kept;
  counters.promises_failed = audit.failed + audit.broken_off;
  counters.late_errors = audit.reported;
}

}  // namespace longhaul::smb::smb2
