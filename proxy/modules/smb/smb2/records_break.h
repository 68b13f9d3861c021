// SPDX-License-Identifier: Apache-2.0
// Records of the breaks of oplocks and leases: notifications, acknowledgements and the responses to those.
#pragma once
#include <variant>

#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

// 2.2.23.1 (notification), 2.2.24.1 (acknowledgement), 2.2.25.1 (response to it): one layout
struct OplockBreak {
  OplockLevel level = OplockLevel::none;
  FileId file;
};
// 2.2.23.2
struct LeaseBreakNotification {
  std::uint16_t new_epoch = 0;
  bool needs_acknowledgement = false;
  LeaseKey key{};
  std::uint32_t current_state = 0;
  std::uint32_t new_state = 0;
};
// 2.2.24.2 (acknowledgement), 2.2.25.2 (response to it)
struct LeaseBreakAcknowledgement {
  LeaseKey key{};
  std::uint32_t state = 0;
  std::uint32_t flags = 0;
};
using AnyBreak = std::variant<OplockBreak, LeaseBreakNotification, LeaseBreakAcknowledgement>;
Result<AnyBreak> parse_break(Bytes element);

}  // namespace longhaul::smb::smb2
