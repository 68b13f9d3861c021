// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_losses.h"

#include <utility>

#include "proxy/modules/promises/marks.h"
#include "proxy/modules/smb/status.h"

namespace longhaul::smb::smb1 {

void NearLosses::say_who() {
  if (lost_->number() == 0 || std::exchange(has_said_who_, true)) return;
  out_.tell(Remembers{lost_->number(), lost_->marks().number_before()});
}

// A client that was reset opens the file again to continue with it, or renames it as completed: its program
// must be informed of the loss. The error ends a chain.
bool NearLosses::goes_on_with_lost(const Message& message) {
  const auto wanted = wanted_by(message);
  if (!wanted) return false;
  if (telling_.tells(files_.of(wanted->name), wanted->use)) return true;
  say_who();  // the far half may have to know before it reports a loss
  return false;
}

bool NearLosses::is_told_by_reset(const Message& message) {
  const auto wanted = wanted_by(message);
  return wanted && telling_.tells_by_reset(files_.of(wanted->name), wanted->use);
}

void NearLosses::passes(const Message& answer) {
  if (answer.header.status == static_cast<std::uint32_t>(Status::lost_writebehind_data))
    telling_.passes(number_of(answer.header));
}

void NearLosses::client_goes_on() {
  for (const MessageNumber answer : telling_.client_goes_on()) out_.tell(LossRead{answer});
}

}  // namespace longhaul::smb::smb1
