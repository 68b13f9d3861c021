// SPDX-License-Identifier: Apache-2.0
// The bytes that a flow delivered, and when: goodput over any interval of a run.
#pragma once
#include <cstdint>
#include <vector>

#include "tests/simulator/timeline.h"

namespace longhaul::simulator {

class FlowMeter {
 public:
  explicit FlowMeter(Duration bin = std::chrono::milliseconds(10)) : bin_(bin) {}

  void add(TimePoint now, std::uint64_t bytes) {
    if (totals_.empty()) first_bin_ = bin_of(now);
    const std::size_t index = bin_of(now) - first_bin_;
    if (index >= totals_.size()) totals_.resize(index + 1, total_);  // quiet bins end where the last one did
    total_ += bytes;
    totals_[index] = total_;
    last_ = now;
  }
  std::uint64_t total() const { return total_; }
  TimePoint last() const { return last_; }
  // Before that moment, to the width of a bin.
  std::uint64_t bytes_before(TimePoint when) const {
    const std::size_t bin = bin_of(when);
    if (totals_.empty() || bin <= first_bin_) return 0;
    return totals_[std::min(bin - first_bin_, totals_.size()) - 1];
  }
  double bits_per_second(TimePoint from, TimePoint to) const {
    return static_cast<double>(bytes_before(to) - bytes_before(from)) * 8 /
           std::chrono::duration<double>(to - from).count();
  }

 private:
  std::size_t bin_of(TimePoint when) const {
    return static_cast<std::size_t>(when.time_since_epoch() / bin_);
  }
  Duration bin_;
  std::size_t first_bin_ = 0;
  std::vector<std::uint64_t> totals_;  // at the end of each bin
  std::uint64_t total_ = 0;
  TimePoint last_{};
};

}  // namespace longhaul::simulator
