// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/simulated/stalls.h"

#include <algorithm>

#include "tests/bench/simulated/transfer.h"
#include "tests/proxy/link/udp/stalling_hosts.h"

namespace longhaul::bench {

using namespace link::simulation;

namespace {

void row(const char* when, StallTerms terms, std::uint64_t seeds) {
  std::vector<double> meanwhile, afterwards;
  int silences = 0, failures = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    terms.seed = seed;
    const StallOutcome outcome = run_stalls(terms);
    meanwhile.push_back(100 * outcome.meanwhile);
    afterwards.push_back(100 * outcome.afterwards);
    silences += outcome.silences;
    failures += outcome.failures;
  }
  std::printf(
      "stalls of %s %s, 25 Mbit/s %d ms, %s: %.1f %% (least %.1f) while hosts run, %.1f %% (least %.1f) in "
      "the "
      "third second after, silent %d times, UDP given up %d times\n",
      name_of(terms.who), when, static_cast<int>(terms.rtt / 1ms), terms.configured ? "configured" : "cold",
      median(meanwhile), *std::ranges::min_element(meanwhile), median(afterwards),
      *std::ranges::min_element(afterwards), silences, failures);
  std::fflush(stdout);
}

}  // namespace

void stalling_hosts(std::uint64_t seeds) {
  for (const bool configured : {true, false})
    for (const Who who : {Who::receiver, Who::sender, Who::both, Who::one_machine, Who::line, Who::lab})
      for (const Duration rtt : {Duration(2ms), Duration(40ms), Duration(250ms)}) {
        row("for a minute", {.rtt = rtt, .configured = configured, .who = who}, seeds);
        // Short, and so more of them.
        row("at the start",
            {.rtt = rtt, .configured = configured, .who = who, .warm_up = Duration{0}, .time = 4s},
            10 * seeds);
      }
}

}  // namespace longhaul::bench
