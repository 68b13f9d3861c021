// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/burst_phase.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("a sender that seems to be alone sends no bursts") {
  PhaseLine at;
  at.pass(0ms, 300ms);
  CHECK_FALSE(BurstPhase::is_wanted(at.now, at.line));
}

TEST_CASE("a burst is faster than the line, within what is allowed, and leaves the queue in its rest") {
  PhaseLine at;
  const Plan burst = BurstPhase::begin(at.line);
  CHECK(burst.gain == Approx(4));
  CHECK(burst.time >= at.line.span());
  const Plan rest = BurstPhase::rest(at.line);
  CHECK(rest.phase == Phase::rest);
  CHECK(rest.gain == 0.5);
  const double bytes = at.line.sharing.burst_bytes(at.line.rate(), at.line.watch);
  CHECK((1 - rest.gain) * kPhaseRate * seconds(rest.time) == Approx(bytes));

  LineModel limited({.max_rate = 1'500'000, .initial_rtt = kPhaseRtt, .rate = kPhaseRate}, kPhaseStart);
  CHECK(BurstPhase::begin(limited).gain == Approx(1.5));
}
