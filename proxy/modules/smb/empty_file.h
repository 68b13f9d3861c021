// SPDX-License-Identifier: Apache-2.0
// What may be asked of an empty file and leaves it empty. Clients that create or empty a file ask for it
// before its first byte (Linux: FLUSH, a size of 0, the times), each a round trip. No data depend on it, so
// the near halves promise it as they do WRITEs. How it is asked is the dialects' (smb1/empty_file.h,
// smb2/empty_file.h).
#pragma once
#include "codecs/bytes.h"

namespace longhaul::smb {

enum class LeavesEmpty : std::uint8_t {
  no,          // or not known to
  untouched,   // FLUSH, an end of file of 0: the file is as it was
  with_times,  // times alone are set
};

// [MS-FSCC] 2.4.14, FileEndOfFileInformation.
LeavesEmpty end_of_file_leaves_empty(Bytes information);
// [MS-FSCC] 2.4.7, FileBasicInformation, its reserved field included.
LeavesEmpty basic_leaves_empty(Bytes information);

}  // namespace longhaul::smb
