// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/near_settled.h"

#include "proxy/modules/promises/marks.h"

namespace longhaul::smb::smb2 {

bool may_be_written_behind(const Open& open) {
  return open.was_write_cached && open.may_write() && !open.unnamed && open.disk_file && !open.directory &&
         !open.durable;
}

void NearSettled::active(const Open& open, TimePoint now) {
  if (!side_.surroundings().features.write_behind || !may_be_written_behind(open) || open.settled) return;
  settling_.active(open.key, now);
  side_.mark(open);
}

void NearSettled::before_request(TimePoint now, const Message& message, const Changes&) {
  for (const Element& element : message.elements) {
    const Command command = element.header.command;
    if (command == Command::create && lost_->number() != 0 && !has_said_who_) {
      has_said_who_ = true;
      side_.out().tell(Remembers{lost_->number(), lost_->marks().number_before()});
    }
    if (command != Command::write) continue;
    const Pending* request = side_.connection().pending(element.header.message_id);
    const Open* open = request ? side_.connection().open(request->file) : nullptr;
    if (!open) continue;
    if (open->settled) settling_.passed_after(number_of(request->id));
    active(*open, now);
  }
}

void NearSettled::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind == Change::Kind::opened) active(*change.open, now);
    if (change.kind == Change::Kind::closed) settling_.forget(change.open->key);
  }
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || !settling_.revives(number_of(each.request.id))) continue;
    Open* open = side_.connection().open(each.request.file);
    if (!open || !open->settled) continue;
    open->settled = false;
    active(*open, now);
  }
}

Taken NearSettled::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  if (const auto* held = std::get_if<Held>(&message))
    if (const Open* open = side_.connection().open(held->open)) active(*open, now);
  return Taken::no;
}

void NearSettled::on_timeout(TimePoint now) {
  while (const auto key = settling_.poll_quiet(now)) {
    Open* open = side_.connection().open(*key);
    if (!open || open->closing) continue;
    if (side_.owes(*open)) {
      settling_.active(*key, now);
      continue;
    }
    open->settled = true;
    ++open->times_settled;
    side_.unmark(*key);
    side_.out().tell(Settled{*key});
  }
}

}  // namespace longhaul::smb::smb2
