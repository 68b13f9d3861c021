// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/seen_capacity.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("the capacity is the most that was seen, and fades when nothing shows it any more") {
  SeenCapacity capacity;
  TimePoint now = TimePoint{} + 1h;
  CHECK(capacity.value() == 0);
  capacity.on_carried(1000, now);
  capacity.raise(500);
  CHECK(capacity.value() == 1000);
  capacity.raise(2000);
  CHECK(capacity.value() == 2000);
  capacity.on_carried(1000, now += 6s);
  CHECK(capacity.value() == Approx(1900));
  capacity.on_carried(1000, now += 1h);  // after a pause by a tenth only
  CHECK(capacity.value() == Approx(1710));
  for (int i = 0; i < 1000; ++i) capacity.on_carried(1000, now += 1s);
  CHECK(capacity.value() == 1000);
}
