// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/reordering.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("Reordering: a path that keeps the order costs no patience") {
  CHECK(Reordering().window(kStart, 100ms) == Duration{0});
}

TEST_CASE("Reordering: late packets are waited for, a quarter longer than the latest was late, for a while") {
  Reordering seen;
  seen.on_late(kStart, 4ms, 100ms);
  seen.on_late(kStart + 1s, 2ms, 100ms);
  CHECK(seen.window(kStart + 1s, 100ms) == 5500us);
  CHECK(seen.window(kStart + 10s, 100ms) == 5500us);
  CHECK(seen.window(kStart + 12s, 100ms) == Duration{0});
}

TEST_CASE("Reordering: on a long path it is remembered for some round trips") {
  Reordering seen;
  seen.on_late(kStart, 4ms, 2s);
  CHECK(seen.window(kStart + 30s, 2s) == 5500us);
  CHECK(seen.window(kStart + 33s, 2s) == Duration{0});
}

TEST_CASE("Reordering: no packet is waited for much longer than a round trip") {
  Reordering seen;
  seen.on_late(kStart, 10s, 40ms);
  CHECK(seen.window(kStart, 40ms) == 50'500us);
}
