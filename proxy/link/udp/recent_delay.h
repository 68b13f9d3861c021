// SPDX-License-Identifier: Apache-2.0
// The recent delay of packets, and how far it exceeds that of the empty path: the queue, without the random
// delays of single packets.
#pragma once
#include <algorithm>
#include <chrono>
#include <optional>

#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class RecentDelay {
 public:
  // Uses the minimum of a short interval: jitter and batches of a busy host delay single packets, a queue
  // delays all of them. On a slow line the interval is longer, or it would contain a single packet.
  void add(TimePoint now, Duration short_while, Duration value) {
    if (last_) {
      variation_ += (std::chrono::abs(value - *last_) - variation_) / 16;
      spacing_ += (std::min<Duration>(now - last_at_, 2 * short_while) - spacing_) / 16;
    }
    last_ = value;
    last_at_ = now;
    window_ = std::max(short_while, 5 * spacing_ / 2);
    recent_.set_window(window_);
    recent_.add(now, value);
    recent_.advance(now);
  }

  // The mean difference between consecutive packets.
  Duration variation() const { return variation_; }
  // `base`: the delay of the empty path.
  Duration above(std::optional<Duration> base) const {
    if (!recent_.value() || !base) return Duration{0};
    // If few packets arrive in that interval, even their minimum is late: of delays evenly distributed over a
    // span, one is late by half of the span, the minimum of two by a third; and consecutive ones differ by a
    // third of it.
    const auto count = std::max<Duration::rep>(window_ / std::max<Duration>(spacing_, Duration{1}), 1);
    return std::max<Duration>(*recent_.value() - *base - 3 * variation_ / (count + 1), Duration{0});
  }

  static constexpr Duration kShortWhile = std::chrono::milliseconds(12);  // the shortest useful interval

 private:
  WindowedMinimum<Duration> recent_{kShortWhile};
  std::optional<Duration> last_;
  TimePoint last_at_{};
  Duration variation_{0};
  Duration spacing_{0};  // time between packets
  Duration window_{kShortWhile};
};

}  // namespace longhaul::link::udp
