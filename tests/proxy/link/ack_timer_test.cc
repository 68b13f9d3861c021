// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/ack_timer.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace std::chrono_literals;

TEST_CASE("an ACK of little waits longest, one of much is sent at once") {
  AckTimer timer;
  CHECK(timer.delay(100ms) == 250ms);
  timer.on_received(1000, 40'000);  // little on the line, but much was made of it
  CHECK(timer.delay(100ms) == 25ms);
  CHECK(timer.delay(1ms) == 10ms);
  CHECK(timer.delay(2s) == 100ms);
  CHECK_FALSE(timer.has_much());
  timer.on_received(256 * 1024, 0);
  CHECK(timer.has_much());
  timer.on_written();
  CHECK_FALSE(timer.has_much());
  CHECK(timer.delay(100ms) == 250ms);
}

TEST_CASE("the earliest time counts, and an ACK that is due stays due until it is written") {
  const TimePoint now{1h};
  AckTimer timer;
  CHECK_FALSE(timer.pending());
  timer.due(now + 20ms, now);
  timer.due(now + 10ms, now);
  timer.due(now + 30ms, now);
  CHECK(timer.next_timeout() == now + 10ms);
  CHECK(timer.pending());
  CHECK_FALSE(timer.is_due(now));
  CHECK(timer.is_due(now + 10ms));
  timer.on_timeout(now + 5ms);
  CHECK(timer.next_timeout() == now + 10ms);
  timer.on_timeout(now + 10ms);
  CHECK_FALSE(timer.next_timeout());
  timer.due(now + 50ms, now);
  CHECK(timer.is_due(now));
  CHECK_FALSE(timer.next_timeout());
  timer.on_written();
  CHECK_FALSE(timer.pending());
}
