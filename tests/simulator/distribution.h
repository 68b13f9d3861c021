// SPDX-License-Identifier: Apache-2.0
// Percentiles of many samples, in buckets 0.8 % wide: constant memory however long a run is. Leaves the unit
// to the caller.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace longhaul::simulator {

class Distribution {
 public:
  void add(double value) {
    ++count_;
    sum_ += value;
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
    const std::size_t bucket = bucket_of(value);
    if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
    ++buckets_[bucket];
  }
  std::uint64_t count() const { return count_; }
  double mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
  double least() const { return count_ ? least_ : 0; }
  double most() const { return count_ ? most_ : 0; }

  // 0 to 100; the upper edge of the bucket where it lies, so a goal that is met here is met.
  double percentile(double percent) const {
    if (!count_) return 0;
    const double wanted = percent / 100 * static_cast<double>(count_);
    double seen = 0;
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      seen += static_cast<double>(buckets_[bucket]);
      if (seen >= wanted && seen > 0) return std::clamp(edge(bucket), least_, most_);
    }
    return most_;
  }

 private:
  static constexpr double kSmallest = 1e-6;  // below it everything is one bucket
  static constexpr double kGrowth = 1.008;
  static std::size_t bucket_of(double value) {
    if (!(value > kSmallest)) return 0;
    return 1 + static_cast<std::size_t>(std::log(value / kSmallest) / std::log(kGrowth));
  }
  static double edge(std::size_t bucket) {
    return kSmallest * std::pow(kGrowth, static_cast<double>(bucket));
  }

  std::uint64_t count_ = 0;
  double sum_ = 0, least_ = 1e300, most_ = -1e300;
  std::vector<std::uint64_t> buckets_;
};

}  // namespace longhaul::simulator
