// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/empty_file.h"

#include "codecs/little_endian.h"

namespace longhaul::smb {

LeavesEmpty end_of_file_leaves_empty(Bytes information) {
  const bool is_nothing = information.size() == 8 && load_le<std::uint64_t>(information, 0) == 0;
  return is_nothing ? LeavesEmpty::untouched : LeavesEmpty::no;
}

// Four times, attributes, reserved. A time of -1 and attributes of 0 stay as they are; not every server takes
// times of -2 and less.
LeavesEmpty basic_leaves_empty(Bytes information) {
  constexpr std::size_t kTimes = 4, kTimesBytes = kTimes * 8;
  if (information.size() != kTimesBytes + 8) return LeavesEmpty::no;
  for (std::size_t i = 0; i < kTimes; ++i)
    if (static_cast<std::int64_t>(load_le<std::uint64_t>(information, i * 8)) < -1) return LeavesEmpty::no;
  return load_le<std::uint32_t>(information, kTimesBytes) == 0 ? LeavesEmpty::with_times : LeavesEmpty::no;
}

}  // namespace longhaul::smb
