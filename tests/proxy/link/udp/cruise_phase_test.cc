// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/cruise_phase.h"

#include <catch2/catch.hpp>
#include <set>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("two links cruise for different times, and shortly while they grow") {
  PhaseLine at;
  CruisePhase cruise(5);
  std::set<Duration> times;
  for (int i = 0; i < 20; ++i) {
    const Plan plan = cruise.begin(at.now, at.line, false);
    CHECK(plan.phase == Phase::cruise);
    CHECK(plan.time >= 3 * at.line.span());
    CHECK(plan.time < 5 * at.line.span());
    times.insert(plan.time);
  }
  CHECK(times.size() > 10);
  CHECK(cruise.begin(at.now, at.line, true).time == at.line.span() / 2);
  CHECK(cruise.pause(at.line) < at.line.span() * 13 / 10);
}

TEST_CASE("it sends a little slower above the meant queue, and a little faster below") {
  PhaseLine at;
  at.pass(0ms, 300ms);
  CHECK(CruisePhase::gain(at.line) > 1);
  CHECK(CruisePhase::gain(at.line) <= 1.02);
  at.pass(300ms, 300ms);
  CHECK(CruisePhase::gain(at.line) == Approx(0.95));  // never slower than that
}

TEST_CASE("it eases once per round trip, and never by more than a tenth") {
  PhaseLine at;
  CruisePhase cruise(1);
  at.pass(0ms, 300ms);
  CHECK_FALSE(cruise.may_ease(at.now, at.line));
  at.pass(500ms, 300ms);
  REQUIRE(cruise.may_ease(at.now, at.line));
  cruise.ease(at.now, at.line);
  CHECK(at.line.rate() == Approx(0.9 * kPhaseRate));
  CHECK_FALSE(cruise.may_ease(at.now + at.line.span() / 2, at.line));
  CHECK(cruise.may_ease(at.now + at.line.span(), at.line));
}

TEST_CASE("it probes when the queue is calm, or after a long wait for that") {
  PhaseLine at;
  CruisePhase cruise(1);
  at.pass(0ms, 300ms);
  (void)cruise.begin(at.now, at.line, false);
  CHECK(cruise.next(at.now, at.line) == CruisePhase::Next::probe);
  at.pass(50ms, 300ms);
  (void)cruise.begin(at.now, at.line, false);
  CHECK(cruise.next(at.now, at.line) == CruisePhase::Next::wait);
  CHECK(cruise.next(at.now + 9 * at.line.span(), at.line) == CruisePhase::Next::probe);
  // Losses that nothing is known about are tested first.
  at.line.tests.losses().add(LossByRate::Level::normal, kPhaseRate, {1, 700'000, 300'000, 100});
  CHECK(cruise.next(at.now + 9 * at.line.span(), at.line) == CruisePhase::Next::test);
}
