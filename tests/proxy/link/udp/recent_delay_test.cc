// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/recent_delay.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
struct LateDelays {
  RecentDelay recent;
  TimePoint now = TimePoint{} + 1h;
  void add(Duration delay, Duration after = 1ms) { recent.add(now += after, 12ms, delay); }
};
}  // namespace

TEST_CASE("a single late packet is no queue, packets that are all late are one") {
  LateDelays delays;
  CHECK(delays.recent.above(50ms) == Duration{0});  // none yet
  for (int i = 0; i < 100; ++i) delays.add(50ms);
  CHECK(delays.recent.above(std::nullopt) == Duration{0});
  delays.add(90ms);
  CHECK(delays.recent.above(50ms) == Duration{0});
  for (int i = 0; i < 100; ++i) delays.add(90ms);
  CHECK(delays.recent.above(50ms) > 35ms);
  CHECK(delays.recent.above(50ms) <= 40ms);
  CHECK(delays.recent.above(120ms) == Duration{0});  // never negative
}

TEST_CASE("random delays of packets that are far apart are not taken for a queue") {
  LateDelays delays;
  for (int i = 0; i < 200; ++i) delays.add(50ms + (i % 5) * 4ms, 20ms);
  CHECK(delays.recent.variation() > 3ms);
  CHECK(delays.recent.above(50ms) < 4ms);
}
