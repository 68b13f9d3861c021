// SPDX-License-Identifier: Apache-2.0
// How the halves name a search to each other, among opens.
#pragma once
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/questions.h"

namespace longhaul::smb::smb1 {

// A search handle (SID) as the key of Answer, More and Drop; no FID's key is equal to it.
inline OpenKey search_key(std::uint16_t uid, std::uint16_t tid, std::uint16_t sid) {
  OpenKey key = key_of(uid, tid, sid);
  key.id[2] = std::byte{'S'};
  return key;
}

}  // namespace longhaul::smb::smb1
