// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/standing_queue.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
constexpr Duration kSpanOfQueue = 100ms;
const TimePoint kQueueStart = TimePoint{} + 1h;
}  // namespace

TEST_CASE("a queue persists when its mean stays above the limit, not for a moment") {
  StandingQueue queue;
  TimePoint now = kQueueStart;
  const auto watch = [&](Duration length, Duration time) {
    for (const TimePoint end = now + time; now < end; now += 10ms) queue.watch_mean(now, length, kSpanOfQueue);
  };
  watch(0ms, 2s);
  watch(50ms, 50ms);
  CHECK_FALSE(queue.persists(now, 20ms, kSpanOfQueue));
  watch(50ms, 2s);
  CHECK(queue.persists(now, 20ms, kSpanOfQueue));
  CHECK_FALSE(queue.persists(now, 60ms, kSpanOfQueue));
  queue.forget_mean(now);
  watch(50ms, 500ms);
  CHECK_FALSE(queue.persists(now, 20ms, kSpanOfQueue));  // eight spans at least
}

TEST_CASE("it gives way twice in a row, and again after a long time or when that is forgotten") {
  StandingQueue queue;
  TimePoint now = kQueueStart;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(queue.may_give_way(now, kSpanOfQueue));
    queue.on_gave_way(now);
    now += 1s;
  }
  CHECK_FALSE(queue.may_give_way(now, kSpanOfQueue));
  SECTION("after a long time") { CHECK(queue.may_give_way(now + 5s, kSpanOfQueue)); }
  SECTION("when it is forgotten") {
    queue.forget_giving_way();
    CHECK(queue.may_give_way(now, kSpanOfQueue));
  }
}

TEST_CASE("some standstills of the line are believed in a time, and not any number") {
  StandingQueue queue;
  TimePoint now = kQueueStart;
  int believed = 0;
  while (queue.believes_standstills(now, kSpanOfQueue)) {
    queue.on_standstill();
    now += 10ms;
    REQUIRE(++believed < 100);
  }
  CHECK(believed == 8);
  CHECK(queue.believes_standstills(now + 5s, kSpanOfQueue));
}

TEST_CASE("losses that do not depend on the rate do not make the line slower") {
  StandingQueue queue;
  CHECK_FALSE(queue.busy_rate(0.1));
  TimePoint now = kQueueStart;
  for (int i = 0; i < 8; ++i) {
    now += 20ms;
    RateSample sample{.now = now,
                      .acked_bytes = 15'000,
                      .forward_delay = 20ms,
                      .sent_at = now - 20ms,
                      .packet_bytes = 1500,
                      .full_packet_bytes = 1500};
    sample.delivery = DeliveryRate{
        .delivered_bytes = 15'000, .dispatched_bytes = 15'000, .interval = 20ms, .arrival_interval = 20ms};
    queue.on_sample(sample, true);
  }
  REQUIRE(queue.busy_rate(0));
  CHECK(*queue.busy_rate(0) == Approx(750'000));
  CHECK(*queue.busy_rate(0.5) == Approx(1'500'000));
}
