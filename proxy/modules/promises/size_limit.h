// SPDX-License-Identifier: Apache-2.0
// Up to which size of a file a WRITE may be acknowledged before the server has it. A server refuses a WRITE
// beyond what its file system can hold, but which limit that is no protocol tells.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

namespace longhaul::promises {

// The limits of file systems lie at powers of two, or up to one of their blocks below (2 GiB - 1, 4 GiB - 1,
// 16 TiB - 4 KiB). Between two powers of two, what the server has confirmed of the file's size speaks for the
// rest; below the lowest of the limits nothing needs to.
inline constexpr std::uint64_t kLowestSizeLimit = std::uint64_t{1} << 31, kBelowSizeLimit = 64 << 10;

inline bool ends_within_limits(std::uint64_t offset, std::uint32_t length, std::uint64_t confirmed_bytes) {
  // [MS-FSA] 2.1.5.3: offsets are signed; two negative ones mean the end of the file and the current
  // position.
  constexpr std::uint64_t kMost = ~std::uint64_t{0} >> 1;
  const std::uint64_t limit =
      confirmed_bytes > kMost / 2 ? kMost : std::max(kLowestSizeLimit, std::bit_floor(confirmed_bytes) * 2);
  return offset <= kMost && length <= limit - kBelowSizeLimit && offset <= limit - kBelowSizeLimit - length;
}

}  // namespace longhaul::promises
