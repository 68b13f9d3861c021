// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/far_losses.h"

#include <vector>

#include "proxy/modules/smb/smb2/near_settled.h"

namespace longhaul::smb::smb2 {

void FarLosses::before_request(TimePoint, const Message& message, const Changes&) {
  files_.on_request(message);
  for (const Element& element : message.elements) {
    habits_.learn(element, policy_);
    if (element.header.command != Command::write) continue;
    const Pending* request = side_.connection().pending(element.header.message_id);
    Open* open = request ? side_.connection().open(request->file) : nullptr;
    if (!open) continue;
    open->settled = false;
    if (may_promise(*open)) doubts_.mark(open->key, file_of(*open));
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
    if (change.open->failed_promise && !change.open->deletes) {
      doubts_.closed_failed(change.open->key, file_of(*change.open));
    } else {
      doubts_.unmark(change.open->key);
    }
  }
  files_.on_done(side_.connection(), outcome);
}

bool FarLosses::may_promise(const Open& open) const {
  return may_have_promised(open) && doubts_.may_promise(open.on_behalf);
}

bool FarLosses::may_have_promised(const Open& open) const {
  return policy_.may_allow(side_.surroundings().features) && may_be_written_behind(open) &&
         doubts_.may_have_promised(open.on_behalf);
}

// After the response that opens it, and Held.
void FarLosses::after_response(TimePoint, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::opened || !may_promise(*change.open)) continue;
    doubts_.unmark(change.open->key);  // of an earlier open, which has failed
    doubts_.mark(change.open->key, file_of(*change.open));
  }
  tell_marked();
}

void FarLosses::tell_marked() {
  if (is_mute_) return;
  for (const auto& [key, is_marked] : doubts_.poll_marks())
    if (const Open* open = side_.connection().open(key))
      side_.out().tell(Marked{.open = key, .settled = open->times_settled, .refused = !is_marked});
}

Taken FarLosses::on_request(TimePoint now, const Message& message, const Changes&) {
  if (!doubts_.any()) return Taken::no;
  bool is_lost = false;
  if (is_mute_ || !side_.connection().sessions().may_be_answered()) {
    for (const GoesOn& each : files_.gone_on_with(message, side_.connection()))
      is_lost |= doubts_.tells_by_reset(each.file, each.use);
    if (is_lost) side_.out().abort();
    return is_lost ? Taken::yes : Taken::no;
  }
  for (const GoesOn& each : files_.gone_on_with(message, side_.connection()))
    is_lost |= doubts_.tells(each.file, each.use, number_of(message.header().message_id));
  if (!is_lost) return Taken::no;
  for (const Element& element : message.elements) {
    const Pending* request = side_.connection().pending(element.header.message_id);
    if (!request || element.header.command == Command::cancel) continue;
    side_.answer(now, element.header, loss_error(element.header, *request));
  }
  return Taken::yes;
}

Taken FarLosses::on_twin(TimePoint, const TwinMessage& message, const Slice&) {
  if (const auto* who = std::get_if<Remembers>(&message)) {
    doubts_.near_is(*who);
    return Taken::yes;
  }
  if (const auto* read = std::get_if<LossRead>(&message)) {
    doubts_.loss_read(*read);
    return Taken::yes;
  }
  if (const auto* settled = std::get_if<Settled>(&message)) {
    if (Open* open = side_.connection().open(settled->open)) {
      open->settled = true;
      ++open->times_settled;
      open->failed_promise = false;
    }
    doubts_.settled(settled->open);
    return Taken::yes;
  }
  if (const auto* promised = std::get_if<Promised>(&message);
      promised && promised_.size() < Connection::kMostPending)
    promised_.emplace(id_of(promised->message), promised->open);
  return Taken::no;
}

void FarLosses::lose_doubtful(Cause cause) {
  std::vector<LostWrites::File> files;
  if (ended_) {
    // Requests that the server has not answered yet are cut off with this flow.
    for (const auto& [id, key] : promised_)
      if (const Open* open = side_.connection().open(key)) files.push_back(file_of(*open));
  } else {
    for (const auto& [id, open] : side_.connection().opens())
      if (may_have_promised(*open) && (!open->settled || open->failed_promise))
        files.push_back(file_of(*open));
  }
  doubts_.lose(cause, files);
}

}  // namespace longhaul::smb::smb2
