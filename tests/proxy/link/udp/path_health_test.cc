// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_health.h"

#include <catch2/catch.hpp>

#include "proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using State = PathHealth::State;

namespace {
constexpr Duration kRtt = 100ms;
}  // namespace

TEST_CASE("a path is probed less and less often, and fails if nothing answers") {
  PathHealth health;
  health.begin_probing(kStart, kRtt);
  std::vector<Duration> at;
  for (TimePoint now = kStart; !health.is_dead(now, kRtt); now += 1ms) {
    if (!health.probe_is_due(now)) continue;
    at.push_back(now - kStart);
    health.on_probe_sent(now);
  }
  CHECK(at == std::vector<Duration>{0ms, 100ms, 300ms, 700ms, 1500ms, 2500ms});
  CHECK(health.is_dead(kStart + 3s, kRtt));
  CHECK_FALSE(health.is_dead(kStart + 3s - 1ms, kRtt));
  health.fail();
  CHECK(health.state() == State::failed);
  CHECK_FALSE(health.next_timeout(kRtt));
  // An acknowledgement of what was given up does not count.
  CHECK_FALSE(health.on_acknowledged());
  CHECK(health.state() == State::failed);
}

TEST_CASE("packets of the peer long after the last acknowledgement tell that this direction is silent") {
  PathHealth health;
  health.begin_probing(kStart, kRtt);
  REQUIRE(health.on_acknowledged());
  health.on_sent(kStart);
  // Perhaps sent before the path became silent.
  for (int i = 0; i < 9; ++i) CHECK_FALSE(health.on_heard(kStart + 499ms, kRtt));
  std::vector<int> told;
  for (int i = 1; i < 1000; ++i)
    if (health.on_heard(kStart + 500ms, kRtt)) told.push_back(i);
  CHECK(told == std::vector<int>{3, 6, 12, 24, 48, 96, 192});
  health.wait_anew(true, kStart + 600ms);
  for (int i = 1; i <= 3; ++i) CHECK(health.on_heard(kStart + 1100ms, kRtt) == (i == 3));
}

TEST_CASE("a path that is up fails a second, or four round trips, after the first packet without an answer") {
  const Duration rtt = GENERATE(100ms, 500ms);
  const Duration patience = std::max<Duration>(1s, 4 * rtt);
  PathHealth health;
  health.begin_probing(kStart, rtt);
  health.on_sent(kStart);
  CHECK(health.on_acknowledged());
  CHECK_FALSE(health.on_acknowledged());
  CHECK(health.state() == State::up);
  health.wait_anew(false, kStart);
  CHECK_FALSE(health.next_timeout(rtt));
  CHECK_FALSE(health.is_dead(kStart + 1h, rtt));
  health.on_sent(kStart + 10s);
  health.on_sent(kStart + 10s + patience / 2);
  CHECK(health.next_timeout(rtt) == kStart + 10s + patience);
  CHECK(health.waits_for(patience / 2, kStart + 10s + patience / 2));
  CHECK_FALSE(health.is_dead(kStart + 10s + patience - 1ms, rtt));
  CHECK(health.is_dead(kStart + 10s + patience, rtt));
  // Each acknowledgement starts the time again.
  health.wait_anew(true, kStart + 10s + patience);
  CHECK_FALSE(health.is_dead(kStart + 10s + patience, rtt));
}

TEST_CASE("beside another carrier a silent path is in doubt first, and fails only if that one answers") {
  PathHealth health;
  health.set_rival(true);
  health.begin_probing(kStart, kRtt);
  health.on_sent(kStart);
  CHECK(health.on_acknowledged());
  health.wait_anew(true, kStart);
  CHECK(health.next_timeout(kRtt) == kStart + 500ms);
  health.on_timeout(kStart + 499ms, kRtt);
  CHECK_FALSE(health.in_doubt());
  health.on_timeout(kStart + 500ms, kRtt);
  CHECK(health.in_doubt());
  // The other one's answer is waited for, but not for ever: an earlier version answers on the silent one.
  CHECK(health.next_timeout(kRtt) == kStart + 30s);
  CHECK_FALSE(health.is_dead(kStart + 29s, kRtt));
  CHECK(health.is_dead(kStart + 30s, kRtt));
  SECTION("the other one answers") {
    health.on_outdone();
    CHECK(health.next_timeout(kRtt) == kStart + 1s);
    CHECK_FALSE(health.is_dead(kStart + 999ms, kRtt));
    CHECK(health.is_dead(kStart + 1s, kRtt));
  }
  SECTION("an acknowledgement ends the doubt, and what was known of the other one") {
    health.on_outdone();
    health.wait_anew(true, kStart + 900ms);
    CHECK_FALSE(health.in_doubt());
    health.on_timeout(kStart + 1900ms, kRtt);
    CHECK(health.in_doubt());
    CHECK_FALSE(health.is_dead(kStart + 1900ms, kRtt));
  }
  SECTION("the other one is gone") {
    health.set_rival(false);
    CHECK(health.is_dead(kStart + 1s, kRtt));
  }
}

TEST_CASE("the other carrier's answer to an earlier question does not count against a path that answers") {
  PathHealth health;
  health.set_rival(true);
  health.begin_probing(kStart, kRtt);
  CHECK(health.on_acknowledged());
  health.on_outdone();
  health.on_sent(kStart);
  health.on_timeout(kStart + 29s, kRtt);
  CHECK_FALSE(health.is_dead(kStart + 29s, kRtt));
}

TEST_CASE("a path that acknowledges small packets and loses all of full size is dead") {
  using namespace std::chrono_literals;
  PathHealth health;
  TimePoint now{1h};
  const Duration rtt = 50ms;
  health.begin_probing(now, rtt);
  REQUIRE(health.on_acknowledged());
  health.on_large(false, 9, now);
  CHECK_FALSE(health.is_dead(now + 1h, rtt));  // a few packets are no proof
  health.on_large(false, 1, now);
  CHECK_FALSE(health.is_dead(now + 900ms, rtt));
  REQUIRE(health.next_timeout(rtt));
  CHECK(*health.next_timeout(rtt) == now + 1s);
  CHECK(health.is_dead(now + 1s, rtt));
  health.on_large(true, 0, now);
  CHECK_FALSE(health.is_dead(now + 1h, rtt));
  health.on_large(false, 100, now);
  health.fail();
  health.begin_probing(now, rtt);
  REQUIRE(health.on_acknowledged());
  CHECK_FALSE(health.is_dead(now + 1h, rtt));
}

TEST_CASE("time in which this process did not run is no silence of the path") {
  PathHealth health;
  health.begin_probing(kStart, kRtt);
  REQUIRE(health.on_acknowledged());
  health.on_sent(kStart);
  health.leave_out(1200ms, kStart + 1300ms);
  CHECK_FALSE(health.is_dead(kStart + 2100ms, kRtt));
  CHECK(health.is_dead(kStart + 2200ms, kRtt));
  health.leave_out(10s, kStart + 3s);  // never into the future
  CHECK(health.is_dead(kStart + 4s, kRtt));
}
