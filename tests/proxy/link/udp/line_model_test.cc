// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/line_model.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("a phase lasts a round trip, or the time of a few packets on a slow line") {
  LineModel slow({.initial_rtt = 10ms, .rate = 1500}, kPhaseStart);
  CHECK(slow.span() == 4s);
  LineModel near({.initial_rtt = 10ms, .rate = 1e9}, kPhaseStart);
  CHECK(near.span() == 40ms);
  LineModel far({.initial_rtt = 600ms, .rate = 1e9}, kPhaseStart);
  CHECK(far.span() == 600ms);
}

TEST_CASE("the rate stays between two packets a second and what is allowed") {
  LineModel line({.max_rate = 500'000, .initial_rtt = 10ms, .rate = 1e6}, kPhaseStart);
  CHECK(line.bounded(line.rate()) == 500'000);
  line.set_rate(2e6);
  CHECK(line.rate() == 500'000);
  line.set_rate(0);
  CHECK(line.rate() == 3000);
  LineModel unbounded({.initial_rtt = 10ms, .rate = 1e6}, kPhaseStart);
  unbounded.set_rate(1e12);
  CHECK(unbounded.rate() == 1e12);
}

TEST_CASE("what the line carried is what was sent, unless more was lost than chance explains") {
  PhaseLine at;
  CHECK_FALSE(at.line.carried(std::nullopt));
  DeliveryRate delivery{.delivered_bytes = 80'000, .dispatched_bytes = 100'000, .interval = 100ms};
  CHECK(*at.line.carried(delivery) == Approx(800'000));  // nothing is known of losses yet
  at.line.tests.losses().add(LossByRate::Level::normal, kPhaseRate, {1, 800'000, 200'000, 100});
  CHECK(*at.line.carried(delivery) == Approx(1'000'000));
}

TEST_CASE("a queue is the delay above the least that was seen") {
  PhaseLine at;
  at.pass(0ms, 300ms);
  CHECK(at.line.is_calm());
  CHECK_FALSE(at.line.overflows());
  at.pass(30ms, 300ms);
  CHECK_FALSE(at.line.is_calm());
  CHECK(at.line.overflows());
  CHECK(at.line.watch.queue() < at.line.queue_limit());
  CHECK_FALSE(at.line.stood_still(at.now));  // its rate meanwhile is not known
}

TEST_CASE("pauses of a radio are no doubt about the path, and a queue of their length is nobody else's") {
  PhaseLine at;
  const auto pass = [&](Duration time) {  // a packet each millisecond, of 12 ms the line stands still for 9
    int doubts = 0;
    for (const TimePoint end = at.now + time; at.now < end; at.now += 1ms) {
      const bool doubted = at.line.watch.doubts();
      const auto waits = std::max<Duration>(9ms - at.now.time_since_epoch() % 12ms, Duration{0});
      at.line.on_sample(at.sample(waits), {.capacity = kPhaseRate});
      doubts += at.line.watch.doubts() && !doubted;
    }
    return doubts;
  };
  const Duration target = at.line.queue_target(), limit = at.line.queue_limit();
  CHECK(at.line.kept_queue() == LineModel::kQueue);
  pass(5s);
  CHECK(pass(5s) == 0);
  CHECK(at.line.watch.usual_pause() > 7ms);
  CHECK(at.line.kept_queue() > 6ms);
  CHECK(at.line.queue_target() == target + at.line.watch.usual_pause());
  CHECK(at.line.queue_limit() == limit + at.line.watch.usual_pause());
}

TEST_CASE("what was concluded while a longer path looked like a queue is undone") {
  PhaseLine at;
  const auto pass = [&](Duration later, Duration time) {
    for (const TimePoint end = at.now + time; at.now < end; at.now += 1ms)
      at.line.on_sample(at.sample(later), {.capacity = kPhaseRate});
  };
  pass(0ms, 300ms);
  const std::int64_t lost = 100'000;
  at.line.tests.losses().add(LossByRate::Level::normal, kPhaseRate, {1, 900'000, lost, 100});
  const double loss = at.line.tests.losses().total_loss();
  while (!at.line.watch.doubts()) {
    pass(100ms, 1ms);
    REQUIRE(at.now < kPhaseStart + 1s);
  }
  at.line.set_rate(kPhaseRate / 2);
  at.line.tests.losses().add(LossByRate::Level::normal, kPhaseRate, {2, 0, 5 * lost, 100});
  CHECK_FALSE(at.line.undo_doubt());
  CHECK(at.line.rate() == kPhaseRate);
  CHECK(at.line.tests.losses().total_loss() > loss);  // a path that is only longer has them, too
  at.line.set_rate(2 * kPhaseRate);
  CHECK_FALSE(at.line.undo_doubt());
  CHECK(at.line.rate() == 2 * kPhaseRate);
}
