// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/drain_phase.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("the longer the queue, the slower and longer it drains, within limits") {
  PhaseLine at;
  at.pass(0ms, 300ms);
  DrainPhase drain;
  const Plan empty = drain.begin(at.now, at.line);
  CHECK(empty.gain == 0.75);
  CHECK(empty.time == 3 * at.line.span());
  at.pass(60ms, 300ms);
  const Plan some = drain.begin(at.now, at.line);
  CHECK(some.gain < 0.75);
  CHECK(some.time > empty.time);
  at.pass(5s, 300ms);
  CHECK(drain.begin(at.now, at.line).gain == 0.2);
}

TEST_CASE("a drain is over when the queue has left, and does not follow another at once") {
  PhaseLine at;
  at.pass(0ms, 300ms);
  CHECK(DrainPhase::is_over(at.line, 1'000'000));
  at.pass(60ms, 300ms);
  CHECK_FALSE(DrainPhase::is_over(at.line, 160'000));
  CHECK(DrainPhase::is_over(at.line, 100'000));  // what the empty line holds
  DrainPhase drain;
  CHECK(drain.may_begin(at.now));
  (void)drain.begin(at.now, at.line);
  CHECK_FALSE(drain.may_begin(at.now + 3 * at.line.span()));
  CHECK(drain.may_begin(at.now + 4 * at.line.span()));
}
