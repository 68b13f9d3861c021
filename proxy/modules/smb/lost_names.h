// SPDX-License-Identifier: Apache-2.0
// SMB's file names, and the purposes of its opens, in records of lost writes (promises/lost_writes.h).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb {

// The last component of \\server\share, folded: a client may use several names for the server.
std::u16string share_of(std::u16string_view unc);
// ASCII letters folded to upper case, without a leading backslash.
std::u16string path_of(std::u16string_view path);
// For people: SHARE\PATH, in UTF-8.
std::string display_name(const LostWrites::File& file);
// From an NT access mask and disposition (the same in SMB1's NT_CREATE_ANDX and SMB2's CREATE).
LostWrites::Use use_of(std::uint32_t access, std::uint32_t disposition);

}  // namespace longhaul::smb
