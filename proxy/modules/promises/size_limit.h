// SPDX-License-Identifier: Apache-2.0
// The file size up to which a WRITE may be acknowledged before the server has it. A server refuses a WRITE
// beyond the limit of its file system, and no protocol reports that limit.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace longhaul::promises {

// The limits of file systems are powers of two, or up to one of their blocks below (2 GiB - 1, 4 GiB - 1, 16
// TiB - 4 KiB). A confirmed size of the file proves that sizes up to the next power of two are possible;
// below the lowest limit no proof is needed.
inline constexpr std::uint64_t kLowestSizeLimit = std::uint64_t{1} << 31, kBelowSizeLimit = 64 << 10;

// Other limits: files whose blocks are found by a tree of four levels (ext2, ext3, and ext4 without extents).
constexpr std::uint64_t most_of_block_map(std::uint64_t block_bytes) {
  const std::uint64_t n = block_bytes / 4;  // block numbers in one block
  return (12 + n + n * n + n * n * n) * block_bytes;
}
// With blocks of 4 KiB the number of sectors, 32 bits that include the tree, is exhausted before that, unless
// it is a number of blocks (huge_file).
constexpr std::uint64_t most_by_sectors(std::uint64_t block_bytes) {
  const std::uint64_t n = block_bytes / 4;
  const std::uint64_t tree = 1 + (1 + n) + (1 + n + n * n);
  return ((std::uint64_t{1} << 32) - 1) * 512 / block_bytes * block_bytes - tree * block_bytes;
}
inline constexpr std::array<std::uint64_t, 4> kOtherSizeLimits{
    most_of_block_map(1024), most_of_block_map(2048), most_by_sectors(4096), most_of_block_map(4096)};

inline bool ends_within_limits(std::uint64_t offset, std::uint32_t length, std::uint64_t confirmed_bytes) {
  // [MS-FSA] 2.1.5.3: offsets are signed; two negative ones mean the end of the file and the current
  // position.
  constexpr std::uint64_t kMost = ~std::uint64_t{0} >> 1;
  std::uint64_t limit =
      confirmed_bytes > kMost / 2 ? kMost : std::max(kLowestSizeLimit, std::bit_floor(confirmed_bytes) * 2);
  for (const std::uint64_t other : kOtherSizeLimits)
    if (confirmed_bytes <= other) limit = std::min(limit, other);
  return offset <= kMost && length <= limit - kBelowSizeLimit && offset <= limit - kBelowSizeLimit - length;
}

}  // namespace longhaul::promises
