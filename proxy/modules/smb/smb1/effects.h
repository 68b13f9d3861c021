// SPDX-License-Identifier: Apache-2.0
// The effects of an SMB1 request: on open files, on holders of their data or attributes, and whether the
// server answers it at all. For single requests; the halves act on the result.
#pragma once
#include "proxy/modules/smb/smb1/records.h"

namespace longhaul::smb::smb1 {

enum class Effect : std::uint8_t {
  none,   // no effect on data or attributes read before
  file,   // the file behind its FID
  names,  // the files of those names: deleted, renamed, truncated by an open
  locks,  // byte ranges of the file behind its FID
};

// The worst of its blocks.
Effect effect_of(const Message& request);
Effect effect_of(const Message& request, const Block& block);
bool takes_locks(const Block& block);
bool writes_data(Command command);
bool has_answer(const Message& request);
// Opens nothing but the file's attributes, and changes nothing: oplocks of others stay.
bool only_looks(const NtCreateRequest& request);

}  // namespace longhaul::smb::smb1
