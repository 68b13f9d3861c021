// SPDX-License-Identifier: Apache-2.0
// The halves' key of a search, used like that of an open.
#pragma once
#include <algorithm>

#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/questions.h"

namespace longhaul::smb::smb1 {

// A search handle (SID) as the key of Answer, More and Drop; differs from every FID's key.
inline OpenKey search_key(std::uint16_t uid, std::uint16_t tid, std::uint16_t sid) {
  OpenKey key = key_of(uid, tid, sid);
  key.id[2] = std::byte{'S'};
  return key;
}

// Compares names of entries: some clients and servers count the zero at their end.
inline bool same_name(Bytes a, Bytes b) {
  const auto without_end = [](Bytes name) {
    while (!name.empty() && name.back() == std::byte{0}) name = name.first(name.size() - 1);
    return name;
  };
  a = without_end(a);
  b = without_end(b);
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace longhaul::smb::smb1
