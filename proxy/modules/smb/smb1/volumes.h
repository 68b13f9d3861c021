// SPDX-License-Identifier: Apache-2.0
// What both halves know of queries about a share's volume (QUERY_FS_INFORMATION): under which key the far
// half reports their answers, and which requests of a client may change them.
#pragma once
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

// Not a file's key: these queries name none.
inline OpenKey volume_key(std::uint16_t uid, std::uint16_t tid) {
  OpenKey key{.session = uid, .tree = tid};
  key.id[2] = std::byte{'V'};
  return key;
}

// The request may use or free space, or end a tree, whose number may be used again.
bool may_change_space(const Message& request, Connection& connection);

}  // namespace longhaul::smb::smb1
