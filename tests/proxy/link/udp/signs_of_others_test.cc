// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/signs_of_others.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
constexpr Duration kMeant = 50ms;  // the queue's length

struct WatchedQueue : PhaseLine {
  SignsOfOthers others{1500};

  WatchedQueue() { pass(0ms, 300ms); }
  // A round trip with 20 packets in it.
  void round(Duration queue, int lost = 0, bool tries = false) {
    for (int i = 0; i < 20; ++i, now += (kPhaseRtt + queue) / 20) {
      RateSample at = sample(queue);
      (i < lost ? at.lost_bytes : at.acked_bytes) = 1500;
      line.on_sample(at, {});
      others.on_sample(at, line);
    }
    others.on_round(line, kMeant, tries);
  }
  // How many round trips it takes; `most` if that was not enough.
  int rounds(Duration queue, int most, int lost = 0, bool tries = false) {
    for (int i = 0; i < most; ++i) {
      if (others.are_enough()) return i;
      round(queue, lost, tries);
    }
    return most;
  }
};
}  // namespace

TEST_CASE("a queue that is as long as meant is no sign of others") {
  WatchedQueue at;
  CHECK(at.rounds(kMeant, 40) == 40);
}

TEST_CASE("one that stays too long is, the longer the sooner") {
  WatchedQueue little, more, most;
  const int slowly = little.rounds(kMeant * 21 / 20, 40), sooner = more.rounds(kMeant * 3 / 2, 40);
  CHECK(slowly < 20);
  CHECK(sooner < slowly);
  CHECK(most.rounds(kMeant * 9, 40) < sooner);
}

TEST_CASE("one that was short in between is not") {
  WatchedQueue at;
  for (int i = 0; i < 10; ++i) {
    CHECK(at.rounds(kMeant * 3 / 2, 4) == 4);
    at.round(kMeant / 2);
  }
}

TEST_CASE(
    "more than the line carries, sent to find out how much that is, keeps its queue for three round trips") {
  WatchedQueue at, tried;
  const int usual = at.rounds(kMeant * 3 / 2, 40);
  CHECK(tried.rounds(kMeant * 3 / 2, 40, 0, true) == usual + 3);
}

TEST_CASE("a queue that overflows in three of twelve round trips is that of others, even if short") {
  WatchedQueue often, rarely;
  CHECK(often.rounds(0ms, 10, 4) == 3);
  CHECK(often.others.loses());
  for (int i = 0; i < 5; ++i) {
    rarely.round(0ms, 4);
    for (int j = 0; j < 5; ++j) rarely.round(0ms);
    CHECK_FALSE(rarely.others.loses());
  }
  CHECK_FALSE(rarely.others.are_enough());
}

TEST_CASE("when most packets of a round trip are lost, the line stood still: that is no overflow") {
  WatchedQueue at;
  CHECK(at.rounds(0ms, 20, 15) == 20);
  CHECK(at.others.loses());
}
