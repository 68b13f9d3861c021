// SPDX-License-Identifier: Apache-2.0
// A line that changes by a schedule of tools/wan/: what it is at each time, and what it could carry.
#pragma once
#include <string>
#include <vector>

#include "tests/bench/simulated/simulation.h"

namespace longhaul::bench {

struct Changes {
  struct Step {
    Duration at{};
    simulator::LineConfig line;
  };
  simulator::LineConfig first;  // until the first step
  std::vector<Step> steps;
  std::uint64_t highest_bits = 0;  // per second from b to a

  // What the line carries from b to a on average, without what is lost: IP bits per second.
  double mean_bits(Duration time) const;
};

// `schedule`: as in a file of longhaul-wan, or "trace KIND[ NAME=VALUE…]" with settings from the start. Ends
// the program if it is none.
Changes read_changes(const std::string& schedule, std::uint64_t seed);

// From now on.
void play(const Changes& changes, simulator::Network& network, simulator::Line& line);

}  // namespace longhaul::bench
