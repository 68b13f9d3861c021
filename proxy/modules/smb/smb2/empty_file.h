// SPDX-License-Identifier: Apache-2.0
// Which SMB2 requests leave an empty file empty: FLUSH, and SET_INFO of a size of 0 or of times.
#pragma once
#include "proxy/modules/smb/empty_file.h"
#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::smb::smb2 {

LeavesEmpty leaves_empty(const Element& request);

}  // namespace longhaul::smb::smb2
