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
// A file by the name that its client sent, relative to its share, in the form used in records: one form for
// all names that servers treat as equal. A DFS name starts with the server and the share, if it is relative
// to that share ([MS-SMB2] 3.3.5.9, [MS-CIFS] 2.2.1.1.1).
enum class NameForm : bool { plain, dfs };
LostWrites::File file_named(const LostWrites::Ends& ends, std::u16string share, std::u16string_view name,
                            NameForm form = NameForm::plain);
// Returns false if a file of that name, in any form, can be neither the file with this path nor below it.
// Faster than file_named(): a rename checks all files that its client has open.
bool may_be_in(std::u16string_view name, std::u16string_view path);
constexpr std::uint64_t kWorkPerName = 100;  // of may_be_in() (codecs/work.h)
// Whether the name is that of a named stream of a file or folder; `::$DATA` is the file itself ([MS-FSCC]
// 2.1.5). Streams have neither records nor promises: operations on a stream neither replace the file's
// content nor inform the program that wrote it.
bool names_stream(std::u16string_view name);
// For display: SHARE\PATH, in UTF-8.
std::string display_name(const LostWrites::File& file);
// From an NT access mask and disposition (the same in SMB1's NT_CREATE_ANDX and SMB2's CREATE).
LostWrites::Use use_of(std::uint32_t access, std::uint32_t disposition);

}  // namespace longhaul::smb
