// SPDX-License-Identifier: Apache-2.0
// Measures how much later than their successors packets arrive on this path, so that loss detection waits
// that long (RFC 8985, section 7.2, but with the observed delay instead of steps of a quarter round trip).
#pragma once
#include <algorithm>

#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class Reordering {
 public:
  // A packet arrived after one that was sent `lateness` later. Only sending times matter: a lateness is the
  // difference of two of them.
  void on_late(TimePoint now, Duration lateness, Duration rtt) {
    lateness_.set_window(std::max<Duration>(16 * rtt, kMemory));
    lateness_.add(now, std::min(lateness, rtt));
    last_ = now;
  }
  // How long after a packet's successors it may still arrive.
  Duration window(TimePoint now, Duration rtt) const {
    const auto most = lateness_.value();
    if (!most || last_ + std::max<Duration>(16 * rtt, kMemory) < now) return Duration{0};
    return *most + *most / 4 + kSlack;
  }

 private:
  // A path that reorders usually continues to do so: forgetting it costs duplicate packets, remembering it
  // costs a little delay.
  static constexpr Duration kMemory = std::chrono::seconds(10);
  static constexpr Duration kSlack = std::chrono::microseconds(500);
  WindowedMaximum<Duration> lateness_{kMemory};
  TimePoint last_{};
};

}  // namespace longhaul::link::udp
