// SPDX-License-Identifier: Apache-2.0
// Any bytes are a twin's message or an error; what was read comes back when it is written.
#include "choices.h"
#include "fuzz/target.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::fuzz::smb_twin_messages_target {
using namespace longhaul::smb;

FUZZ_TARGET(smb_twin_messages) {
  auto message = decode(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  fuzz::require(attached_bytes(*message) <= kMaxAttachedBytes);
  const Slice once = encode(*message);
  auto again = decode(once.bytes());
  fuzz::require(again.has_value() && again->index() == message->index());
  const Slice twice = encode(*again);
  fuzz::require(std::ranges::equal(once.bytes(), twice.bytes()));
  return 0;
}

}  // namespace longhaul::fuzz::smb_twin_messages_target
