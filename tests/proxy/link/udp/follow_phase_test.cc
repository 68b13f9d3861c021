// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/follow_phase.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
using FollowNext = FollowPhase::Next;
constexpr double kFollowedPacket = 1500;

struct FollowedLine : PhaseLine {
  FollowPhase follow{1500};
  Duration base_rtt;

  explicit FollowedLine(Duration rtt = kPhaseRtt) : base_rtt(rtt) {
    for (int i = 0; i < 3; ++i) (void)round({.queue = 0ms});
    follow.begin(now);
  }
  struct Round {
    Duration queue = kPhaseRtt / 2;  // as it is meant to be
    double arrives = kPhaseRate;
    double lost = 0;  // a share
    bool too_little = false;
    std::uint32_t packet = 1500;  // bytes of each
  };
  // A round trip, in which a packet is acknowledged every 5 ms.
  FollowNext round(const Round& with) {
    FollowNext next = FollowNext::stay;
    const Duration takes = base_rtt + with.queue;
    for (const TimePoint began = now; now < began + takes && next == FollowNext::stay; now += 5ms) {
      RateSample at = measured(with.arrives);
      at.rtt = takes;
      at.forward_delay = base_rtt / 2 + with.queue;
      at.acked_bytes = static_cast<std::uint64_t>(with.arrives * 0.005 * (1 - with.lost));
      at.lost_bytes = static_cast<std::uint64_t>(with.arrives * 0.005 * with.lost);
      at.delivery->application_limited = with.too_little;
      at.packet_bytes = with.packet;
      line.on_sample(at, {});
      follow.on_sample(at, line, now == began);
      next = follow.next(now, line);
    }
    return next;
  }
  // Returns how many round trips passed before something else followed, `most` if nothing did.
  int rounds(const Round& with, int most, FollowNext expected) {
    for (int i = 0; i < most; ++i)
      if (const FollowNext next = round(with); next != FollowNext::stay) {
        CHECK(next == expected);
        return i;
      }
    return most;
  }
};
}  // namespace

TEST_CASE("a sender that follows sends at the rate of arrivals while the queue has its length") {
  FollowedLine at;
  const Duration target = at.follow.target(at.line);
  CHECK(target == kPhaseRtt / 2);
  for (const double rate : {kPhaseRate, 3 * kPhaseRate, kPhaseRate / 3}) {
    (void)at.round({.arrives = rate});
    (void)at.round({.arrives = rate});
    CHECK(at.line.rate() == Approx(rate).epsilon(0.05));
  }
  CHECK(at.follow.window(at.line) ==
        Approx(at.line.rate() * seconds(kPhaseRtt + 2 * target) + 6 * kFollowedPacket).epsilon(0.05));
}

TEST_CASE(
    "a sender that follows is faster than arrivals while the queue is too short, and slower if too long") {
  FollowedLine at;
  (void)at.round({.queue = 0ms});
  (void)at.round({.queue = 0ms});
  CHECK(at.line.rate() == Approx(1.5 * kPhaseRate).epsilon(0.05));  // it fills the queue in a round trip
  (void)at.round({.queue = 150ms});
  (void)at.round({.queue = 150ms});
  CHECK(at.line.rate() == Approx(0.6 * kPhaseRate).epsilon(0.05));
}

TEST_CASE("a line that has stood still is tried with a few packets, for two seconds") {
  FollowedLine at;
  (void)at.round({});
  at.now += 1s;
  (void)at.round({.arrives = 1});
  const double tried = 4 * kFollowedPacket / 0.05;
  CHECK(at.line.rate() == Approx(tried));
  for (int i = 0; i < 20; ++i) (void)at.round({.arrives = 1});
  CHECK(at.line.rate() < tried / 10);
  SECTION("but a slow one not faster than a quarter of what it has shown") {
    FollowedLine slow;
    for (int i = 0; i < 2; ++i) (void)slow.round({.arrives = 80'000});
    slow.now += 1s;
    (void)slow.round({.arrives = 1});
    CHECK(slow.line.rate() == Approx(20'000).epsilon(0.1));
  }
}

TEST_CASE("on a slow line two packets may wait") {
  FollowedLine at;
  for (int i = 0; i < 60; ++i) (void)at.round({.arrives = 12'000});
  CHECK(at.follow.target(at.line) == 250ms);
}

TEST_CASE("a queue that stays, however much less is sent, is that of others") {
  FollowedLine at;
  const Duration target = at.follow.target(at.line);
  SECTION("the longer it is, the sooner") {
    const int little = at.rounds({.queue = target * 21 / 20}, 40, FollowNext::compete);
    FollowedLine more, most;
    const int much = more.rounds({.queue = target * 3 / 2}, 40, FollowNext::compete);
    const int very_much = most.rounds({.queue = target * 9}, 40, FollowNext::compete);
    CHECK(little < 20);
    CHECK(much < little);
    CHECK(very_much < much);
    CHECK(very_much >= 1);
  }
  SECTION("after fewer round trips where they are long") {
    FollowedLine far_away(250ms);
    const Duration too_long = far_away.follow.target(far_away.line) * 3 / 2;
    const int long_ones = far_away.rounds({.queue = too_long}, 40, FollowNext::compete);
    CHECK(long_ones < at.rounds({.queue = target * 3 / 2}, 40, FollowNext::compete));
    CHECK(long_ones >= 2);
  }
  SECTION("not if only packets that are not full are acknowledged: they show no queue") {
    CHECK(at.rounds({.queue = target * 3 / 2}, 4, FollowNext::compete) == 4);
    CHECK(at.rounds({.queue = target * 3 / 2, .packet = 100}, 10, FollowNext::compete) == 10);
  }
  SECTION("not if too little arrives to tell it from the packets themselves") {
    (void)at.round({});  // what the line carries otherwise: its own packets are not that queue
    const FollowedLine::Round few{.queue = target * 9, .arrives = 2'000};
    CHECK(at.rounds(few, 10, FollowNext::compete) == 10);
    CHECK(at.rounds(few, 10, FollowNext::compete) < 10);  // over several round trips there is enough
  }
  SECTION("not if it is short enough in between") {
    for (int i = 0; i < 5; ++i) {
      CHECK(at.rounds({.queue = target * 3 / 2}, 4, FollowNext::compete) == 4);
      CHECK(at.rounds({.queue = target / 2}, 3, FollowNext::compete) == 3);
    }
  }
}

TEST_CASE("a queue that overflows again and again is that of others") {
  FollowedLine at;
  CHECK(at.rounds({.lost = 0.1}, 20, FollowNext::compete) < 6);
  SECTION("but once is chance, and what a standstill loses shows nothing") {
    FollowedLine once, still;
    CHECK(once.rounds({.lost = 0.1}, 1, FollowNext::compete) == 1);
    CHECK(once.rounds({}, 20, FollowNext::compete) == 20);
    CHECK(still.rounds({.lost = 0.9}, 20, FollowNext::compete) == 20);
  }
}

TEST_CASE("a line that has become steady is followed no longer, a varying one is") {
  FollowedLine steady, varying;
  const int until = steady.rounds({}, 200, FollowNext::stop);
  CHECK(until > 40);
  CHECK(until < 80);
  for (int i = 0; i < 20; ++i) {
    CHECK(varying.rounds({.queue = 10ms, .arrives = kPhaseRate}, 5, FollowNext::stop) == 5);
    CHECK(varying.rounds({.arrives = kPhaseRate / 2}, 5, FollowNext::stop) == 5);
  }
}

TEST_CASE("a sender whose queue was never short for long stops, so that the empty line is seen") {
  FollowedLine at;
  int passed = 0;
  FollowNext next = FollowNext::stay;
  for (; passed < 400 && next == FollowNext::stay; ++passed)
    next = at.round({.arrives = passed % 10 < 5 ? kPhaseRate : kPhaseRate / 2});
  CHECK(next == FollowNext::stop);
  CHECK(passed > 100);
}

TEST_CASE("a sender whose queue stays empty for long stops, because probing finds a faster line sooner") {
  FollowedLine at;
  (void)at.round({});
  const int until = at.rounds({.queue = 0ms}, 100, FollowNext::stop);
  CHECK(until > 30);
  CHECK(until < 50);
}

TEST_CASE("while losses are more than usual nothing is sent faster than it arrives") {
  FollowedLine at;
  (void)at.round({.queue = 0ms});
  (void)at.round({.queue = 0ms, .lost = 0.1});
  (void)at.round({.queue = 0ms});
  CHECK(at.line.rate() == Approx(kPhaseRate).epsilon(0.05));
}

TEST_CASE("arrivals that come at once do not show a line many times as fast") {
  FollowedLine at;
  (void)at.round({});
  RateSample sample = at.measured(kPhaseRate);
  sample.delivery->arrival_interval = sample.delivery->interval / 100;
  at.line.on_sample(sample, {});
  at.follow.on_sample(sample, at.line, false);
  CHECK(at.line.rate() <= 2 * kPhaseRate);
}

TEST_CASE("acknowledgements that wait on their way back do not count as packets that wait") {
  FollowedLine at;
  for (int i = 0; i < 3; ++i) (void)at.round({});
  const double before = at.follow.window(at.line);
  for (Duration passed{0}; passed < 300ms; passed += 5ms, at.now += 5ms) {
    RateSample late = at.measured(kPhaseRate);
    late.rtt = kPhaseRtt + kPhaseRtt / 2 + 20ms;
    late.forward_delay = kPhaseRtt / 2 + kPhaseRtt / 2;
    at.line.on_sample(late, {});
  }
  CHECK(at.follow.window(at.line) == Approx(before + at.line.rate() * 0.02).epsilon(0.01));
}

TEST_CASE("a sender with too little to send follows no longer") {
  FollowedLine at;
  (void)at.round({});
  const int until = at.rounds({.queue = 0ms, .too_little = true}, 200, FollowNext::stop);
  CHECK(until > 5);
  CHECK(until < 40);
}
