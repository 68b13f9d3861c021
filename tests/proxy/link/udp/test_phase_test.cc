// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/test_phase.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
void lose_in_test(PhaseLine& at, LossByRate::Level level, double rate, double share) {
  const auto lost = static_cast<std::int64_t>(1e6 * share);
  at.line.tests.losses().add(level, rate,
                             {1, 1'000'000 - lost, lost, static_cast<std::int32_t>(lost / 1500)});
}
}  // namespace

TEST_CASE("losses that a lower rate avoids lower the rate to what arrives") {
  for (const bool arrivals : {true, false}) {
    PhaseLine at;
    TestPhase test;
    test.on_arrivals(700'000);
    if (!arrivals) test.forget_arrivals();
    lose_in_test(at, LossByRate::Level::normal, kPhaseRate, 0.3);
    const Plan plan = TestPhase::begin(at.line, false);
    CHECK(plan.gain < 0.7);
    lose_in_test(at, LossByRate::Level::low, plan.gain * kPhaseRate, 0);
    REQUIRE(test.finish(at.now, at.line));
    CHECK(at.line.tests.is_policed());
    // Without a measurement, the rate that avoided losses.
    if (arrivals)
      CHECK(at.line.rate() == Approx(700'000));
    else
      CHECK(at.line.rate() < kPhaseRate);
  }
}

TEST_CASE("losses that are the same at a lower rate leave the rate alone") {
  PhaseLine at;
  TestPhase test;
  test.on_arrivals(700'000);
  lose_in_test(at, LossByRate::Level::normal, kPhaseRate, 0.3);
  lose_in_test(at, LossByRate::Level::low, 0.6 * kPhaseRate, 0.3);
  CHECK_FALSE(test.finish(at.now, at.line));
  CHECK(at.line.rate() == kPhaseRate);
}

TEST_CASE("a sender of one piece per round trip is tested for three") {
  PhaseLine at;
  CHECK(TestPhase::begin(at.line, true).time == 3 * at.line.span());
  CHECK(TestPhase::begin(at.line, false).time == at.line.span());
  CHECK_FALSE(TestPhase::is_answered(at.now + at.line.span(), at.now, at.line));
  CHECK(TestPhase::is_answered(at.now + 2 * at.line.span(), at.now, at.line));
}

TEST_CASE("what arrived while a host or the line stood still does not lower the rate below the tested one") {
  PhaseLine at;
  TestPhase test;
  test.on_arrivals(2'000);
  lose_in_test(at, LossByRate::Level::normal, kPhaseRate, 0.3);
  const Plan plan = TestPhase::begin(at.line, false);
  lose_in_test(at, LossByRate::Level::low, plan.gain * kPhaseRate, 0);
  REQUIRE(test.finish(at.now, at.line));
  CHECK(at.line.rate() > 0.6 * kPhaseRate);
}

TEST_CASE("where few packets are sent a test lasts until they are enough, within limits") {
  PhaseLine at;
  at.line.set_rate(30'000);  // 20 packets a second
  CHECK(TestPhase::begin(at.line, false).time == 4s);
  at.line.set_rate(3'000);
  CHECK(TestPhase::begin(at.line, false).time == 10s);
}
