// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/base_delay.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("the base is the least delay of a minute; a longer path is believed after that") {
  BaseDelay base;
  CHECK_FALSE(base.value());
  TimePoint now = TimePoint{} + 1h;
  base.add(now, 50ms);
  base.add(now += 1s, 40ms);
  base.add(now += 1s, 70ms);
  CHECK(base.value() == Duration(40ms));
  for (int i = 0; i < 55; ++i) base.add(now += 1s, 90ms);
  CHECK(base.value() == Duration(40ms));
  for (int i = 0; i < 20; ++i) base.add(now += 1s, 90ms);
  CHECK(base.value() > Duration(40ms));
  base.add(now += 1s, 10ms);  // a shorter one at once
  CHECK(base.value() == Duration(10ms));
}

TEST_CASE("a path that was found to be longer is believed at once") {
  BaseDelay base;
  const TimePoint now = TimePoint{} + 1h;
  base.add(now, 40ms);
  base.restart(now + 1s, 90ms);
  CHECK(base.value() == Duration(90ms));
  base.add(now + 2s, 60ms);
  CHECK(base.value() == Duration(60ms));
}

TEST_CASE("the base delay stays known however long nothing was measured") {
  BaseDelay base;
  base.add(TimePoint{} + 1h, -5ms);  // two clocks: only differences count
  base.add(TimePoint{} + 100h, 20ms);
  CHECK(base.value() == Duration(20ms));
}
