// SPDX-License-Identifier: Apache-2.0
// Queries about a share's volume (QUERY_FS_INFORMATION), for both halves: the key under which the far half
// reports their responses, and which requests of a client may change them.
#pragma once
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

// Differs from every file's key: these queries name no file.
inline OpenKey volume_key(std::uint16_t uid, std::uint16_t tid) {
  OpenKey key{.session = uid, .tree = tid};
  key.id[2] = std::byte{'V'};
  return key;
}

// Whether the request may use or free space, or end a tree, whose number may be reused.
bool may_change_space(const Message& request, Connection& connection);

}  // namespace longhaul::smb::smb1
