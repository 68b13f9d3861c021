// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/arrivals.h"

#include <catch2/catch.hpp>

using longhaul::flows::Arrivals;

TEST_CASE("an output has arrived when everything before its end was acknowledged") {
  Arrivals arrivals;
  arrivals.sent(0, 10);
  CHECK_FALSE(arrivals.any());
  arrivals.sent(2, 20);
  arrivals.sent(2, 25);  // nothing new
  arrivals.sent(3, 30);
  CHECK(arrivals.any());
  CHECK_FALSE(arrivals.poll(19));
  CHECK(arrivals.poll(20) == 2);
  CHECK_FALSE(arrivals.poll(29));
  CHECK(arrivals.poll(100) == 3);
  CHECK_FALSE(arrivals.any());
}
