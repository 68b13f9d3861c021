// SPDX-License-Identifier: Apache-2.0
// Names of users in logins: UTF-16 as on the wire, upper case as NTLM requires it, and printable text for
// logs.
#pragma once
#include <string>
#include <string_view>

#include "codecs/bytes.h"

namespace longhaul::smb::seal {

std::u16string from_wire(Bytes utf16le);
// Invalid UTF-8 becomes U+FFFD.
std::u16string from_utf8(std::string_view text);
// ASCII, Latin, Greek and Cyrillic letters, as [MS-NLMP] and Windows map them; other characters are
// unchanged.
std::u16string upper(std::u16string_view text);
// At most 64 characters; control characters and lone surrogates as '?'.
std::string printable_name(std::u16string_view text);
std::string printable_name(std::string_view text);

}  // namespace longhaul::smb::seal
