// SPDX-License-Identifier: Apache-2.0
// Requests that leave an empty file empty. Clients that create or empty a file ask for them before its first
// byte (Linux: FLUSH, a size of 0, the times), each a round trip. No data depend on them, so near_writes.h
// promises them as it does WRITEs.
#pragma once
#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::smb::smb2 {

enum class LeavesEmpty : std::uint8_t {
  no,          // or not known to
  untouched,   // FLUSH, SET_INFO of an end of file of 0: the file is as it was
  with_times,  // SET_INFO of times alone
};
LeavesEmpty leaves_empty(const Element& request);

}  // namespace longhaul::smb::smb2
