// SPDX-License-Identifier: Apache-2.0
// Detects that compression slows down a fast line: a loop that is always busy and compresses much should use
// a lower level, and a higher one again when it has time. Pure.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "proxy/link/types.h"

namespace longhaul::link {

class EncodeRelief {
 public:
  static constexpr Duration kWindow = std::chrono::milliseconds(100);
  static constexpr unsigned kMostSteps = 6;

  bool due(TimePoint now) const { return now - since_ >= kWindow; }
  // `processor`: CPU time of this thread so far; `compressed`: bytes given to zstd. May be called at any
  // rate. Returns whether steps() has changed.
  bool update(TimePoint now, Duration processor, std::uint64_t compressed) {
    if (!due(now)) return false;
    const Duration passed = now - since_;
    const double busy = std::chrono::duration<double>(processor - processor_) / passed;
    const bool much = compressed - compressed_ >= kMuch * static_cast<std::uint64_t>(passed / kWindow);
    since_ = now;
    processor_ = processor;
    compressed_ = compressed;
    // Long after the last call, earlier findings no longer count.
    if (passed > kForgotten) {
      busy_windows_ = idle_windows_ = 0;
      patience_ = kFirstPatience;
      return std::exchange(steps_, 0u) != 0;
    }
    busy_windows_ = busy > kBusy && much ? busy_windows_ + 1 : 0;
    idle_windows_ = busy < kEasy || !much ? idle_windows_ + 1 : 0;
    if (busy_windows_ >= kBusyWindows && steps_ < kMostSteps) {
      ++steps_;
      busy_windows_ = 0;
      patience_ = std::min(2 * patience_, kMostPatience);
      return true;
    }
    if (idle_windows_ >= patience_ && steps_ > 0) {
      --steps_;
      idle_windows_ = 0;
      return true;
    }
    return false;
  }
  // By how many levels compression is lowered.
  unsigned steps() const { return steps_; }

 private:
  static constexpr double kBusy = 0.9, kEasy = 0.75;
  static constexpr std::uint64_t kMuch = 500'000;  // in a window; below it zstd is not the bottleneck
  static constexpr int kBusyWindows = 3;
  // In windows; doubled each time the loop is found busy, so that the level does not oscillate.
  static constexpr int kFirstPatience = 5, kMostPatience = 600;
  static constexpr Duration kForgotten = std::chrono::seconds(5);

  TimePoint since_{};
  Duration processor_{0};
  std::uint64_t compressed_ = 0;
  unsigned steps_ = 0;
  int busy_windows_ = 0, idle_windows_ = 0, patience_ = kFirstPatience;
};

}  // namespace longhaul::link
