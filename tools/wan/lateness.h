// SPDX-License-Identifier: Apache-2.0
// How much later than planned packets left: a histogram with bounded error and no allocation per sample.
// Leaves the measuring itself to forwarder.h.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>

namespace longhaul::wan {

class Lateness {
 public:
  void add(std::chrono::nanoseconds late);  // less than zero counts as zero
  std::uint64_t count() const { return count_; }
  std::chrono::nanoseconds max() const { return max_; }
  // The value that this share of samples does not exceed, at most 1/16 too high.
  std::chrono::nanoseconds quantile(double share) const;

 private:
  static constexpr unsigned kStepBits = 4;  // 16 steps per power of two
  static constexpr std::size_t kBuckets = (64 - kStepBits + 1) << kStepBits;
  static std::size_t bucket_of(std::uint64_t nanos);
  static std::uint64_t upper_end(std::size_t bucket);

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds max_{0};
};

}  // namespace longhaul::wan
