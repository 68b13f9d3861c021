// SPDX-License-Identifier: Apache-2.0
// The effects of an SMB1 request: on open files, on cached data or attributes, and whether the server answers
// it at all. For single requests; the halves act on the result.
#pragma once
#include "proxy/modules/smb/smb1/records.h"

namespace longhaul::smb::smb1 {

enum class Effect : std::uint8_t {
  none,   // no effect on data or attributes read before
  file,   // the file of its FID
  names,  // the files with those names: deleted, renamed, truncated by an open
  locks,  // byte ranges of the file of its FID
};

// The strongest effect of its blocks.
Effect effect_of(const Message& request);
Effect effect_of(const Message& request, const Block& block);
bool takes_locks(const Block& block);
bool writes_data(Command command);
bool has_answer(const Message& request);
// Whether it only opens the file's attributes, and changes nothing: oplocks of others remain.
bool only_looks(const NtCreateRequest& request);

}  // namespace longhaul::smb::smb1
