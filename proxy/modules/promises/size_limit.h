// SPDX-License-Identifier: Apache-2.0
// The file size up to which a WRITE may be acknowledged before the server has it. A server refuses a WRITE
// beyond the limit of its file system, and no protocol reports that limit.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

namespace longhaul::promises {

// The limits of file systems are powers of two, or up to one of their blocks below (2 GiB - 1, 4 GiB - 1, 16
// TiB - 4 KiB). A confirmed size of the file proves that sizes up to the next power of two are possible;
// below the lowest limit no proof is needed.
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
