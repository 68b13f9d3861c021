// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/near_losses.h"

#include "proxy/modules/smb/lost_names.h"

namespace longhaul::smb::smb2 {

// A client that was reset opens the file again to continue with it, or renames it as completed: its program
// must be informed of the loss. Clients use one chain per compound, so that all of it fails together.
bool NearLosses::refuses(TimePoint now, const Message& message) {
  bool is_lost = false;
  if (!side_.connection().sessions().may_be_answered()) {
    for (const GoesOn& each : gone_on_with(message)) is_lost |= telling_.tells_by_reset(each.file, each.use);
    if (is_lost) side_.out().abort();
    return is_lost;
  }
  for (const GoesOn& each : gone_on_with(message)) is_lost |= telling_.tells(each.file, each.use);
  if (!is_lost) return false;
  for (const Element& element : message.elements) {
    const Pending* request = side_.connection().pending(element.header.message_id);
    if (!request || element.header.command == Command::cancel) continue;
    side_.answer(now, request->id, loss_error(element.header, *request));
  }
  return true;
}

void NearLosses::client_goes_on() {
  for (const MessageNumber answer : telling_.client_goes_on()) side_.out().tell(LossRead{answer});
}

void NearLosses::on_outcome(const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered)
    if (!each.interim && each.element && each.element->header.status == Status::lost_writebehind_data)
      telling_.passes(number_of(each.request.id));
}

void NearLosses::goes_unread() {
  if (lost_->told_by_reset(ends_)) side_.out().abort();
}

}  // namespace longhaul::smb::smb2
