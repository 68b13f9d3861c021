// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/first_measurement.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("only packets sent at the rate found measure it, and only if all of them were") {
  PhaseLine at;
  FirstMeasurement first(true);
  const Experiments::Past drain{1, Phase::drain, 0}, cruise{2, Phase::cruise, kPhaseRate};
  CHECK_FALSE(first.counts(at.measured(kPhaseRate), nullptr));  // forgotten
  CHECK_FALSE(first.counts(at.measured(kPhaseRate), &drain));
  CHECK(first.pending());
  CHECK(first.counts(at.measured(kPhaseRate), &cruise));  // began before the rate was found
  CHECK(first.pending());
  at.now += 99ms;
  CHECK(first.counts(at.measured(kPhaseRate), &cruise));
  CHECK(first.pending());
  at.now += 1ms;
  CHECK(first.counts(at.measured(kPhaseRate), &cruise));
  CHECK_FALSE(first.pending());
}
