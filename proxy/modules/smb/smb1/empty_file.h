// SPDX-License-Identifier: Apache-2.0
// Requests that leave an empty file empty. Clients that create or empty a file ask for them before its first
// byte (Linux: FLUSH, a size of 0, the times), each a round trip. No data depend on them, so the near half
// promises them as it does WRITEs.
#pragma once
#include "proxy/modules/smb/smb1/message.h"

namespace longhaul::smb::smb1 {

enum class LeavesEmpty : std::uint8_t {
  no,          // or not known to
  untouched,   // FLUSH, SET_FILE_INFORMATION of an end of file of 0: the file is as it was
  with_times,  // SET_FILE_INFORMATION of times alone
};
LeavesEmpty leaves_empty(const Message& request);

}  // namespace longhaul::smb::smb1
