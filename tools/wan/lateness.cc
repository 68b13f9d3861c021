// SPDX-License-Identifier: Apache-2.0
// Buckets that double in width every sixteen, as HDR histograms do.
#include "tools/wan/lateness.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace longhaul::wan {

std::size_t Lateness::bucket_of(std::uint64_t nanos) {
  constexpr std::uint64_t kSteps = 1u << kStepBits;
  if (nanos < kSteps) return static_cast<std::size_t>(nanos);
  const unsigned shift = static_cast<unsigned>(std::bit_width(nanos)) - kStepBits - 1;
  return static_cast<std::size_t>(((shift + 1) << kStepBits) + ((nanos >> shift) - kSteps));
}

std::uint64_t Lateness::upper_end(std::size_t bucket) {
  constexpr std::uint64_t kSteps = 1u << kStepBits;
  if (bucket < kSteps) return bucket;
  const std::uint64_t shift = (bucket >> kStepBits) - 1;
  return ((kSteps + bucket % kSteps + 1) << shift) - 1;
}

void Lateness::add(std::chrono::nanoseconds late) {
  late = std::max(late, std::chrono::nanoseconds{0});
  ++buckets_[bucket_of(static_cast<std::uint64_t>(late.count()))];
  ++count_;
  max_ = std::max(max_, late);
}

std::chrono::nanoseconds Lateness::quantile(double share) const {
  const double wanted = std::ceil(share * static_cast<double>(count_));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += buckets_[bucket];
    if (seen > 0 && static_cast<double>(seen) >= wanted)
      return std::min(max_, std::chrono::nanoseconds{static_cast<std::int64_t>(upper_end(bucket))});
  }
  return max_;
}

}  // namespace longhaul::wan
