// SPDX-License-Identifier: Apache-2.0
// Reads both clocks close together, and again if something came between.
#include "tools/wan/clock.h"

#include <algorithm>

namespace longhaul::wan {
namespace {

using namespace std::chrono_literals;

Duration read(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

}  // namespace

TimePoint clock_now() { return TimePoint{read(CLOCK_MONOTONIC)}; }

void WallClock::refresh() {
  Duration best = Duration::max();
  for (int attempt = 0; attempt < 8 && best > 1us; ++attempt) {
    const Duration before = read(CLOCK_MONOTONIC);
    const Duration wall = read(CLOCK_REALTIME);
    const Duration after = read(CLOCK_MONOTONIC);
    if (after - before >= best) continue;
    best = after - before;
    ahead_ = wall - (before + best / 2);
    checked_ = TimePoint{after};
  }
}

TimePoint WallClock::to_steady(std::uint32_t seconds, std::uint32_t nanos) const {
  const Duration wall = std::chrono::seconds{seconds} + std::chrono::nanoseconds{nanos};
  // A stamp from the future, or from long ago, was made before the wall clock was set: now is the best guess.
  const TimePoint steady{wall - ahead_};
  return steady > checked_ + 1ms || steady < checked_ - 10s ? checked_ : steady;
}

}  // namespace longhaul::wan
