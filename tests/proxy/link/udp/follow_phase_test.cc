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

  FollowedLine() {
    pass(0ms, 300ms);
    follow.begin(now, line);
  }
  struct Round {
    Duration queue = kPhaseRtt / 2;  // as it is meant to be
    double arrives = kPhaseRate;
    double lost = 0;  // a share
    bool too_little = false;
  };
  // A round trip, in which a packet is acknowledged every 5 ms.
  FollowNext round(const Round& with) {
    FollowNext next = FollowNext::stay;
    const Duration takes = kPhaseRtt + with.queue;
    for (const TimePoint began = now; now < began + takes && next == FollowNext::stay; now += 5ms) {
      RateSample at = measured(with.arrives);
      at.rtt = takes;
      at.forward_delay = kPhaseRtt / 2 + with.queue;
      at.acked_bytes = static_cast<std::uint64_t>(with.arrives * 0.005 * (1 - with.lost));
      at.lost_bytes = static_cast<std::uint64_t>(with.arrives * 0.005 * with.lost);
      at.delivery->application_limited = with.too_little;
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

TEST_CASE("a line that has stood still is tried with a few packets in each round trip") {
  FollowedLine at;
  (void)at.round({});
  (void)at.round({.arrives = 1});
  CHECK(at.line.rate() == Approx(4 * kFollowedPacket / 0.05));
  SECTION("but not faster than a quarter of what a slow line has shown") {
    FollowedLine slow;
    for (int i = 0; i < 2; ++i) (void)slow.round({.arrives = 8000});
    (void)slow.round({.arrives = 1});
    CHECK(slow.line.rate() == Approx(2000).epsilon(0.6));
    CHECK(slow.line.rate() < 4000);
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
    CHECK(varying.rounds({.arrives = kPhaseRate}, 5, FollowNext::stop) == 5);
    CHECK(varying.rounds({.arrives = kPhaseRate / 2}, 5, FollowNext::stop) == 5);
  }
}

TEST_CASE("a sender with too little to send follows no longer") {
  FollowedLine at;
  (void)at.round({});
  const int until = at.rounds({.queue = 0ms, .too_little = true}, 200, FollowNext::stop);
  CHECK(until > 5);
  CHECK(until < 40);
}
