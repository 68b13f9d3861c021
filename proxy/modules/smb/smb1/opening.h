// SPDX-License-Identifier: Apache-2.0
// The open requested by NT_CREATE_ANDX and OPEN_ANDX, as derived from the request alone.
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
// Returns nullopt if this block opens nothing, or is chained with commands other than READs. Such opens are
// not tracked: one status covers the effects of the whole chain.
std::optional<Opening> opening_of(const Message& request, const Block& block);

}  // namespace longhaul::smb::smb1
