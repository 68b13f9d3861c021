// SPDX-License-Identifier: Apache-2.0
// What a request to open a file asks for: NT_CREATE_ANDX and OPEN_ANDX. From the request alone.
#pragma once
#include <optional>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/smb1/open.h"

namespace longhaul::smb::smb1 {

// A requested open, and its properties once it is granted.
struct Opening {
  Open open;
  std::uint16_t open_andx_flags = 0;
  bool is_nt_create = false;
  LostWrites::Use use = LostWrites::Use::attributes;
};
// None: this block opens nothing, or is chained with anything but READs. Such opens are not tracked: one
// status covers the effects of the whole chain.
std::optional<Opening> opening_of(const Message& request, const Block& block);

}  // namespace longhaul::smb::smb1
