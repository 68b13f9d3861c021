// SPDX-License-Identifier: Apache-2.0
// The delay of the empty path: the minimum within a minute, or since the path became longer (longer_path.h).
// Delay above it counts as a queue (recent_delay.h).
#pragma once
#include <chrono>
#include <optional>

#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class BaseDelay {
 public:
  void add(TimePoint now, Duration value) { least_.add(now, value); }
  // The path has become longer; `value` is its delay now.
  void restart(TimePoint now, Duration value) {
    least_ = WindowedMinimum<Duration>{kMemory};
    add(now, value);
  }
  std::optional<Duration> value() const { return least_.value(); }

  // Long enough that a long-lasting queue of a competing sender does not count as the path's own delay.
  static constexpr Duration kMemory = std::chrono::seconds(60);

 private:
  WindowedMinimum<Duration> least_{kMemory};
};

}  // namespace longhaul::link::udp
