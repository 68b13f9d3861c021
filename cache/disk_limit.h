// SPDX-License-Identifier: Apache-2.0
// How many segments a disk store may have, and of what size in all: the configured limit, less what the rest
// of the directory takes. Pure; inventory.h decides which of them are evicted.
#pragma once
#include <algorithm>
#include <optional>

#include "cache/inventory.h"

namespace longhaul::cache {

inline constexpr std::uint64_t kMinCapBytes = 64u << 20;

class DiskLimit {
 public:
  static constexpr std::uint64_t kBytesPerSegment = 256 << 10;  // of the cap: bounds their number and memory
  static constexpr std::uint64_t kGrowth = 4u << 20;  // of the catalogue's log, between two checks of it

  explicit DiskLimit(std::uint64_t cap_bytes) : cap_bytes_(std::max(cap_bytes, kMinCapBytes)) {}

  std::uint64_t cap_bytes() const { return cap_bytes_; }
  std::uint64_t overhead_bytes() const { return overhead_bytes_; }
  // SegmentFolder::overhead_bytes(), whenever it was measured.
  void set_overhead(std::uint64_t bytes) { overhead_bytes_ = bytes; }

  // Whether a segment of this size fits at all.
  bool fits_alone(std::uint64_t bytes) const { return allowance() + bytes <= cap_bytes_; }
  // What is exceeded if segments of `bytes` in all, `count` of them, are to be there.
  std::optional<Inventory::Short> exceeded(std::uint64_t bytes, std::uint64_t count) const {
    if (bytes + allowance() > cap_bytes_) return Inventory::Short::bytes;
    if (count > cap_bytes_ / kBytesPerSegment) return Inventory::Short::segments;
    return std::nullopt;
  }
  // An inventory for it: three quarters may be kept longer because they were used.
  Inventory inventory() const { return {cap_bytes_ / 4 * 3, cap_bytes_ / kBytesPerSegment / 4 * 3}; }

 private:
  // A compaction of the catalogue writes it a second time before it removes the first.
  std::uint64_t allowance() const { return 2 * overhead_bytes_ + kGrowth; }

  std::uint64_t cap_bytes_;
  std::uint64_t overhead_bytes_ = 0;
};

}  // namespace longhaul::cache
