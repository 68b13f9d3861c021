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
    // The least of a short while: jitter and batches of a busy host add to single packets, a queue to all.
    const Duration while_ = lag();
    if (sample.rtt) {
      base_rtt_.add(sample.now, *sample.rtt);
      add_recent(recent_rtt_, while_, sample.now, *sample.rtt);
    }
    if (sample.forward_delay) {
      base_delay_.add(sample.now, *sample.forward_delay);
      add_recent(recent_delay_, while_, sample.now, *sample.forward_delay);
    }
  }

  bool measured() const { return base_rtt_.value().has_value(); }
  // Without queue, as far as was seen within the last seconds.
  Duration base_rtt() const { return base_rtt_.value().value_or(initial_rtt_); }
  // What stands in the queue now, as time. A queue on the way back is in the round trip alone, two clocks
  // that drift apart are in the forward delay alone.
  Duration queue() const {
    if (!recent_delay_.value() || !recent_rtt_.value()) return Duration{0};
    return std::max<Duration>(
        std::min(*recent_delay_.value() - *base_delay_.value(), *recent_rtt_.value() - *base_rtt_.value()),
        Duration{0});
  }
  // A queue that grows is seen so much later.
  Duration lag() const { return std::clamp<Duration>(base_rtt() / 4, kShortWhile, kLongWhile); }

 private:
  static void add_recent(WindowedMinimum<Duration>& recent, Duration window, TimePoint now, Duration value) {
    recent.set_window(window);
    recent.add(now, value);
    recent.advance(now);
  }

  // Long enough that a sender of the other kind, which keeps a queue standing for long, is not taken for the
  // line.
  static constexpr Duration kMemory = std::chrono::seconds(60);
  static constexpr Duration kShortWhile = std::chrono::milliseconds(12);
  static constexpr Duration kLongWhile = std::chrono::milliseconds(50);
  Duration initial_rtt_;
  WindowedMinimum<Duration> base_rtt_{kMemory};
  WindowedMinimum<Duration> base_delay_{kMemory};
  WindowedMinimum<Duration> recent_rtt_{kShortWhile};
  WindowedMinimum<Duration> recent_delay_{kShortWhile};
};

}  // namespace longhaul::link::udp
