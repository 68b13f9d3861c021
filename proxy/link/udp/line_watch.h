// SPDX-License-Identifier: Apache-2.0
// How long packets wait in the line's queue, and how long the line is without it, from forward delays and
// round trips. Leaves what to do about it to the laws.
#pragma once
#include <algorithm>
#include <optional>

#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class LineWatch {
 public:
  explicit LineWatch(Duration initial_rtt) : initial_rtt_(initial_rtt) {}

  void on_sample(const RateSample& sample) {
    if (sample.rtt) base_rtt_.add(sample.now, *sample.rtt);
    if (!sample.forward_delay) return;
    base_delay_.add(sample.now, *sample.forward_delay);
    // The least of a short while: jitter and batches of a busy host add to single packets, a queue to all.
    recent_.set_window(
        std::clamp<Duration>(base_rtt() / 4, std::chrono::milliseconds(4), std::chrono::milliseconds(40)));
    recent_.add(sample.now, *sample.forward_delay);
    recent_.advance(sample.now);
    calmest_.add(sample.now, queue());
    calmest_.advance(sample.now);
  }

  bool measured() const { return base_rtt_.value().has_value(); }
  // Without queue, as far as was seen within the last seconds.
  Duration base_rtt() const { return base_rtt_.value().value_or(initial_rtt_); }
  // What stands in the queue now, as time.
  Duration queue() const {
    if (!recent_.value()) return Duration{0};
    return std::max<Duration>(*recent_.value() - *base_delay_.value(), Duration{0});
  }
  // The least of it within `window`, as set last.
  Duration least_queue() const { return calmest_.value().value_or(Duration{0}); }
  void watch_least_queue_for(Duration window) { calmest_.set_window(window); }
  void forget_least_queue() { calmest_.clear(); }

 private:
  static constexpr Duration kMemory = std::chrono::seconds(15);
  Duration initial_rtt_;
  WindowedMinimum<Duration> base_rtt_{kMemory};
  WindowedMinimum<Duration> base_delay_{kMemory};
  WindowedMinimum<Duration> recent_{std::chrono::milliseconds(10)};
  WindowedMinimum<Duration> calmest_{std::chrono::seconds(1)};
};

}  // namespace longhaul::link::udp
