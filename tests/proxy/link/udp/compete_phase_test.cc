// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/compete_phase.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
struct CompetedLine : PhaseLine {
  CompetePhase compete{1500};
  Experiments experiments;

  explicit CompetedLine(double capacity = 0) {
    pass(0ms, 300ms);
    pass(60ms, 300ms);
    experiments.begin(compete.begin(now, line, capacity), line.rate(), now);
  }
  // Until something follows the present phase, `most` at the latest.
  std::optional<Plan> run(Duration queue, Duration most) {
    for (const TimePoint end = now + most; now < end; now += 5ms) {
      RateSample at = sample(queue);
      at.acked_bytes = 1500;
      line.on_sample(at, {});
      compete.on_sample(at, line, 2 * kPhaseRate, false);
      if (const auto plan = compete.next(now, experiments, line)) return plan;
    }
    return std::nullopt;
  }
};
}  // namespace

TEST_CASE("it competes for half of what the line carries at least") {
  CompetedLine small, large(4e6);
  CHECK(large.compete.window_packets() > 1.5 * small.compete.window_packets());
  CHECK(small.line.rate() == kPhaseRate);
}

TEST_CASE("after a while it looks whose queue it is, and competes on if it stays") {
  CompetedLine at;
  const auto look = at.run(60ms, 60s);
  REQUIRE(look);
  CHECK(look->phase == Phase::look);
  CHECK(look->gain == 0.5);
  at.experiments.begin(*look, at.line.rate(), at.now);
  const auto next = at.run(60ms, 10s);
  REQUIRE(next);
  CHECK(next->phase == Phase::compete);
}

TEST_CASE("it ends when the queue leaves during a look, or does not come back at all") {
  CompetedLine at;
  SECTION("during a look") {
    const auto look = at.run(60ms, 60s);
    REQUIRE(look);
    at.experiments.begin(*look, at.line.rate(), at.now);
    const auto next = at.run(0ms, 10s);
    REQUIRE(next);
    CHECK(next->phase == Phase::drain);
  }
  SECTION("without one") {
    const auto next = at.run(0ms, 60s);
    REQUIRE(next);
    CHECK(next->phase == Phase::drain);
  }
}
