// SPDX-License-Identifier: Apache-2.0
// When a rate counts as lost. In simulation: what made the measured rate fall to nearly nothing, and how soon
// it is found again.
#include "proxy/link/udp/lost_rate.h"

#include <catch2/catch.hpp>

#include "law_on_line.h"
#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul;
using namespace longhaul::link::udp;
using namespace longhaul::link::udp::law_on_line;

namespace {
constexpr Path kUsual{.bits = 25e6, .rtt = 40ms};
}

TEST_CASE("a rate is lost far below what was promised, with few packets per round trip, and no queue") {
  PhaseLine at;
  at.pass(0ms, 300ms);
  LostRate lost;
  at.line.set_rate(10'000);
  CHECK_FALSE(lost.is_lost(1min, at.line));  // nothing was promised
  lost.promise(kPhaseRate);
  lost.promise(kPhaseRate / 10);
  CHECK(lost.is_lost(501ms, at.line));
  CHECK_FALSE(lost.is_lost(500ms, at.line));
  at.line.set_rate(60'000);  // four packets in a round trip are enough to go on
  CHECK_FALSE(lost.is_lost(1min, at.line));
  at.line.set_rate(10'000);
  at.pass(50ms, 300ms);
  CHECK_FALSE(lost.is_lost(1min, at.line));
}

TEST_CASE("a line that has really become slow is measured anew once or twice") {
  PhaseLine at;
  at.pass(0ms, 300ms);
  LostRate lost;
  lost.promise(kPhaseRate);
  at.line.set_rate(10'000);
  int times = 0;
  while (lost.is_lost(1min, at.line)) {
    lost.on_begun_anew();
    REQUIRE(++times < 10);
  }
  CHECK(times == 2);
}

TEST_CASE("a line that was hardly there for a while is used again within two seconds") {
  for (const Law law : {Law::paced, Law::measured})
    for (const Duration time : {3s, 20s, 60s}) {
      INFO("law " << static_cast<int>(law) << ", slow for " << time / 1s << " s");
      Run run(kUsual, law, kUsual.bits);
      run.network.run_for(5s);
      Path slow = kUsual;
      slow.bits = 100e3;
      slow.queue_bytes = 125'000;
      run.change(slow);
      run.network.run_for(time);
      run.change(kUsual);
      // What stands in the queue leaves at once then; a doubt about it ends.
      run.network.run_for(time == 3s ? 6s : 2s);
      CHECK(run.share(2s) > 0.9);
    }
}

TEST_CASE("where few packets are sent the doubt about a longer path ends soon") {
  Run run(kUsual, Law::measured);
  run.network.run_for(5s);
  Path slow = kUsual;
  slow.bits = 100e3;
  slow.queue_bytes = 125'000;
  run.change(slow);
  run.network.run_for(15s);
  const auto& law = dynamic_cast<MeasuredLaw&>(run.flow.sender.law());
  CHECK_FALSE(law.watch().doubts());
  CHECK(law.line_rate() * 8 < 200e3);
}
