// SPDX-License-Identifier: Apache-2.0
// Hosts that have no processor for the link for a while, again and again: both rate laws carry as much as
// before soon after, and what only our own process did not do is no silence of the peer.
#include "stalling_hosts.h"

#include <catch2/catch.hpp>

using namespace longhaul::link::simulation;
using namespace std::chrono_literals;

TEST_CASE("after hosts stood still the line is full again soon, and UDP carries") {
  for (const bool configured : {true, false})
    for (const Who who : {Who::receiver, Who::sender, Who::both, Who::one_machine, Who::line, Who::lab})
      for (const bool from_start : {true, false}) {
        INFO("stalls of " << name_of(who) << (configured ? ", configured" : ", measured")
                          << (from_start ? ", from the start" : ""));
        const StallOutcome outcome = run_stalls({.configured = configured,
                                                 .who = who,
                                                 .warm_up = std::chrono::seconds(from_start ? 0 : 2),
                                                 .time = 8s});
        CHECK(outcome.right);
        CHECK(outcome.sends_over_udp);
        CHECK(outcome.afterwards > 0.8);
      }
}

TEST_CASE("where both ends did not run at the same time nothing is taken for silent") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const Who who : {Who::one_machine, Who::lab}) {
      INFO("seed " << seed << ", stalls of " << name_of(who));
      const StallOutcome outcome = run_stalls({.seed = seed, .who = who, .time = 15s});
      CHECK(outcome.silences == 0);
      CHECK(outcome.failures == 0);
      CHECK(outcome.afterwards > 0.8);
    }
}
