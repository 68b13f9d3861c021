// SPDX-License-Identifier: Apache-2.0
// How a message is protected on a leg. Between the legs, every message of a session whose keys are known is
// plain, and unused bits of its Flags ([MS-SMB2] 2.2.1.2) record how it arrived. So the other leg applies the
// same protection, and messages made by the halves, which have none of these bits, can be distinguished. The
// bits are never sent to clients or servers, and are cleared in messages from them.
#pragma once
#include <algorithm>
#include <cstdint>

#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::seal {

// In increasing order of strength.
enum class Form : std::uint8_t { plain, with_signature, encrypted };

namespace arrival_flags {
inline constexpr std::uint32_t arrived = 0x00100000;  // from a client or server, verified
inline constexpr std::uint32_t with_signature = 0x00200000;
inline constexpr std::uint32_t encrypted = 0x00400000;
static_assert((arrived | with_signature | encrypted) == smb2::kArrivalFlags);
}  // namespace arrival_flags

constexpr std::uint32_t flags_of(Form form) {
  return arrival_flags::arrived | (form == Form::encrypted        ? arrival_flags::encrypted
                                   : form == Form::with_signature ? arrival_flags::with_signature
                                                                  : 0);
}
constexpr Form form_in(std::uint32_t flags) {
  return flags & arrival_flags::encrypted        ? Form::encrypted
         : flags & arrival_flags::with_signature ? Form::with_signature
                                                 : Form::plain;
}

}  // namespace longhaul::smb::seal
