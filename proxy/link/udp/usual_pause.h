// SPDX-License-Identifier: Apache-2.0
// How long a line usually pauses: a shared radio stands still while others transmit, again and again, and
// then takes what waits faster than it came. While nothing waits it is idle in between. Reads delays only.
#pragma once
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

class UsualPause {
 public:
  // A packet that waits for the end of a pause is late by it, compared with those before. Of the longest in
  // each short time roughly the median: a single one, however long, counts little.
  void add(TimePoint now, Duration delay) {
    if (before_) longest_ = std::max(longest_, delay - std::min(before_->first, before_->second));
    before_ = std::pair(before_ ? before_->second : delay, delay);
    if (now - since_ < kTime) return;
    usual_ += std::clamp(longest_ - usual_, -kStep, kStep);
    longest_ = Duration{0};
    since_ = now;
  }
  Duration value() const { return usual_ < kLeast ? Duration{0} : std::min(usual_, kMost); }

  static constexpr Duration kTime = std::chrono::milliseconds(100);
  static constexpr Duration kStep = std::chrono::microseconds(100);
  static constexpr Duration kLeast =
      std::chrono::milliseconds(5);  // less is jitter, or a packet on a slow line
  static constexpr Duration kMost = std::chrono::milliseconds(20);  // what is longer is no habit of radios

 private:
  std::optional<std::pair<Duration, Duration>> before_;  // delays of the last two packets
  TimePoint since_{};
  Duration longest_{0};  // since then
  Duration usual_{0};
};

}  // namespace longhaul::link::udp
