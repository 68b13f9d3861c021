// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/experiments.h"

#include <catch2/catch.hpp>
#include <string>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
const TimePoint kFirstExperiment = TimePoint{} + 1h;
}

TEST_CASE("each phase has a number, and its rate is remembered with it") {
  Experiments experiments(7);
  experiments.begin({Phase::up, 1.25, 100ms}, 1000, kFirstExperiment);
  CHECK(experiments.number() == 8);
  CHECK(experiments.in(Phase::up));
  CHECK(experiments.ends() == kFirstExperiment + 100ms);
  experiments.begin({Phase::compete}, 2000, kFirstExperiment);
  CHECK(experiments.ends() == TimePoint::max());
  const auto* up = experiments.find(8);
  REQUIRE(up);
  CHECK(up->phase == Phase::up);
  CHECK(up->rate == 1250);
  experiments.set_gain(0.5);  // of the present one, and not of what is remembered
  CHECK(experiments.find(9)->rate == 2000);
}

TEST_CASE("experiments that are long ago, or never were, are not found") {
  Experiments experiments(0xffff - 10);  // the numbers wrap
  for (std::size_t i = 0; i < Experiments::kRemembered + 1; ++i)
    experiments.begin({Phase::cruise}, static_cast<double>(i), kFirstExperiment);
  const std::uint16_t first = 0xffff - 9;
  CHECK_FALSE(experiments.find(first));
  CHECK(experiments.find(first + 1));
  CHECK(experiments.find(experiments.number()));
  CHECK_FALSE(experiments.find(static_cast<std::uint16_t>(experiments.number() + 1)));
}

TEST_CASE("losses count only where no queue of the sender's own making may overflow") {
  for (const Phase phase : {Phase::drain, Phase::ramp, Phase::burst, Phase::follow})
    CHECK_FALSE(measures_loss(phase));
  for (const Phase phase : {Phase::cruise, Phase::up, Phase::down, Phase::test, Phase::compete})
    CHECK(measures_loss(phase));
  CHECK(level_of(Phase::up) == LossByRate::Level::high);
  CHECK(level_of(Phase::test) == LossByRate::Level::low);
  CHECK(level_of(Phase::cruise) == LossByRate::Level::normal);
  CHECK(std::string(name_of(Phase::train)) == "train");
  CHECK(std::string(name_of(Phase::rest)) == "rest");
  for (const Phase phase :
       {Phase::train, Phase::ramp, Phase::drain, Phase::test, Phase::follow, Phase::compete, Phase::look})
    CHECK_FALSE(is_settled(phase));
}
