// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/far_losses.h"

#include <algorithm>

#include "proxy/modules/smb/smb2/near_settled.h"

namespace longhaul::smb::smb2 {

void FarLosses::before_request(TimePoint, const Message& message, const Changes&) {
  telling_.client_goes_on();
  files_.on_request(message);
  for (const Element& element : message.elements) {
    if (element.header.command != Command::write) continue;
    const Pending* request = side_.connection().pending(element.header.message_id);
    Open* open = request ? side_.connection().open(request->file) : nullptr;
    if (!open) continue;
    open->settled = false;
    if (may_promise(*open)) marks_.mark(open->key, file_of(*open), who_.near);
    tell_marked();
  }
}

void FarLosses::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  files_.on_outcome(outcome);
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim) continue;
    const auto promised = promised_.extract(each.request.id);
    if (promised.empty() || !each.element || each.element->header.status == Status::success) continue;
    if (Open* open = side_.connection().open(promised.mapped())) open->failed_promise = true;
  }
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::closed) continue;
    if (!change.open->failed_promise || change.open->deletes) {
      marks_.unmark(change.open->key);
      continue;
    }
    failed_.push_back({change.open->key, file_of(*change.open)});
    if (failed_.size() <= kMostFailed) continue;
    marks_.unmark(failed_.front().open);
    failed_.pop_front();
  }
  files_.on_done(side_.connection(), outcome);
}

bool FarLosses::may_promise(const Open& open) const {
  return may_promise_ && may_be_written_behind(open) && (open.on_behalf || may_promise_cached_);
}

// Behind the answer that opens it, and Held.
void FarLosses::after_response(TimePoint, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::opened || !may_promise(*change.open)) continue;
    marks_.unmark(change.open->key);  // of an earlier open, which has failed
    marks_.mark(change.open->key, file_of(*change.open), who_.near);
  }
  tell_marked();
}

void FarLosses::tell_marked() {
  for (const OpenKey& key : marks_.poll_durable())
    if (const Open* open = side_.connection().open(key)) side_.out().tell(Marked{key, open->times_settled});
}

Taken FarLosses::on_request(TimePoint now, const Message& message, const Changes&) {
  const Header& header = message.header();
  if (!message.single() || header.command != Command::create || !lost_->any(ends_) ||
      side_.connection().any_untouchable())
    return Taken::no;
  const Pending* request = side_.connection().pending(header.message_id);
  if (!request || !request->opening) return Taken::no;
  const LostWrites::File file = file_of(*request->opening);
  lost_->known_to(who_.near, file);
  lost_->known_to(who_.before, file);
  const LostWrites::Use use = use_of(*request->opening);
  if (use == LostWrites::Use::replaces || !telling_.has(file, use)) return Taken::no;
  telling_.told(file, use);
  Header answer = answer_to(header, Status::lost_writebehind_data);
  side_.answer(now, message, build_error_response(answer));
  return Taken::yes;
}

Taken FarLosses::on_twin(TimePoint, const TwinMessage& message, const Slice&) {
  if (const auto* who = std::get_if<Remembers>(&message)) {
    who_ = *who;
    return Taken::yes;
  }
  if (const auto* settled = std::get_if<Settled>(&message)) {
    marks_.unmark(settled->open);
    if (Open* open = side_.connection().open(settled->open)) {
      open->settled = true;
      ++open->times_settled;
      open->failed_promise = false;
    }
    std::erase_if(failed_, [&](const Failed& each) { return each.open == settled->open; });
    return Taken::yes;
  }
  if (const auto* promised = std::get_if<Promised>(&message);
      promised && promised_.size() < Connection::kMostPending)
    promised_.emplace(promised->message, promised->open);
  return Taken::no;
}

void FarLosses::lose_doubtful(Cause cause) {
  // The client of one flow never gets more reports.
  std::size_t left = LostWrites::kMost;
  const auto lose = [&](const LostWrites::File& file) {
    if (left == 0) return;
    --left;
    lost_->add(file, {.cause = cause, .near = who_.near});
  };
  if (!may_promise_) return;
  for (const Failed& each : failed_) lose(each.file);
  if (ended_) {
    // Requests that the server has not answered yet are cut off with this flow.
    for (const auto& [id, key] : promised_)
      if (const Open* open = side_.connection().open(key)) lose(file_of(*open));
    return;
  }
  for (const auto& [id, open] : side_.connection().opens())
    if (may_promise(*open) && (!open->settled || open->failed_promise)) lose(file_of(*open));
}

}  // namespace longhaul::smb::smb2
