// SPDX-License-Identifier: Apache-2.0
// Parses a list of NTLM hashes: lines of user:hash or domain\user:hash, with 32 hexadecimal digits.
#pragma once
#include <functional>
#include <string>

#include "proxy/modules/smb/seal/server_keys.h"

namespace longhaul::smb::seal {

// Calls `add` for each line; empty lines and those that begin with '#' are skipped. The error is the rest of
// a sentence whose subject is the file, with the number of the line but nothing of its content.
using AddHash = std::function<void(std::u16string_view domain, std::u16string_view user, Bytes hash)>;
config::TextResult<void> parse_hash_list(std::string_view text, const AddHash& add);

}  // namespace longhaul::smb::seal
