// SPDX-License-Identifier: Apache-2.0
// SMB's names of files, and what its opens are for, in records of lost writes (promises/lost_writes.h).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb {

// The last component of \\server\share, folded: a client may name the server in several ways.
std::u16string share_of(std::u16string_view unc);
// Folded to upper case where it is ASCII, without a leading backslash.
std::u16string path_of(std::u16string_view path);
// For people: SHARE\PATH, in UTF-8.
std::string display_name(const LostWrites::File& file);
// Of an NT access mask and disposition (SMB1's NT_CREATE_ANDX and SMB2's CREATE have the same).
LostWrites::Use use_of(std::uint32_t access, std::uint32_t disposition);

}  // namespace longhaul::smb
