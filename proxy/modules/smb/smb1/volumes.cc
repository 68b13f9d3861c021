// SPDX-License-Identifier: Apache-2.0
// See volumes.h.
#include "proxy/modules/smb/smb1/volumes.h"

#include <algorithm>

namespace longhaul::smb::smb1 {

bool may_change_space(const Message& request, Connection& connection) {
  if (effect_of(request) == Effect::names) return true;
  return std::any_of(request.blocks.begin(), request.blocks.end(), [&](const Block& block) {
    switch (block.command) {
      case Command::nt_create_andx: {
        const auto create = parse_nt_create_request(block, request.header);
        return !create || create->disposition != static_cast<std::uint32_t>(Disposition::open) ||
               (create->options & kOptionDeleteOnClose) != 0;
      }
      case Command::open_andx:
        return true;
      case Command::close: {
        // Data written or deleted through it may take effect now.
        const Open* open = request.is_chained() ? nullptr : connection.open_of(request);
        return !open || open->may_write || open->delete_on_close || open->changed;
      }
      default: {
        const Effect effect = effect_of(request, block);
        return effect == Effect::file || effect == Effect::names;
      }
    }
  });
}

}  // namespace longhaul::smb::smb1
