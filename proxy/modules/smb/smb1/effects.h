// SPDX-License-Identifier: Apache-2.0
// What an SMB1 request does: to files that are open, for who holds data or attributes of them, and whether
// the server answers it at all. Asked of single requests; what follows is the halves'.
#pragma once
#include "proxy/modules/smb/smb1/records.h"

namespace longhaul::smb::smb1 {

enum class Effect : std::uint8_t {
  none,   // nothing that data or attributes that were read before could show
  file,   // the file behind its FID
  names,  // what is found under names: deleted, renamed, truncated by an open
  locks,  // byte ranges of the file behind its FID
};

// The worst of its blocks.
Effect effect_of(const Message& request);
Effect effect_of(const Message& request, const Block& block);
bool takes_locks(const Block& block);
bool has_answer(const Message& request);
// Opens nothing but the file's attributes, and changes nothing: oplocks of others stay.
bool only_looks(const NtCreateRequest& request);

}  // namespace longhaul::smb::smb1
