// SPDX-License-Identifier: Apache-2.0
// Which SMB1 requests leave an empty file empty: FLUSH, and SET_FILE_INFORMATION of a size of 0 or of times.
#pragma once
#include "proxy/modules/smb/empty_file.h"
#include "proxy/modules/smb/smb1/message.h"

namespace longhaul::smb::smb1 {

LeavesEmpty leaves_empty(const Message& request);

}  // namespace longhaul::smb::smb1
