// SPDX-License-Identifier: Apache-2.0
// How the lines to one peer are used: the values of [[peer]] policy, and of the feature `paths`, with which a
// rule overrides it. A separate file, because the link's pure part needs these values and nothing else of a
// peer's configuration.
#pragma once
#include <cstddef>
#include <cstdint>

namespace longhaul::config {

// Each policy chooses among the working paths of the lowest cost.
enum class PathPolicy : std::uint8_t {
  sum,       // bulk streams use all of them, everything else the best one
  best,      // everything uses the one with the lowest round-trip time
  failover,  // everything uses the first one, in the file's order
};

inline constexpr std::size_t kPathPolicies = 3;

// The setting for some flows. In the order in which two settings combine: `meet` takes the later of two.
enum class PathUse : std::uint8_t { automatic, sum, best, failover };

// `of_peer`: the policy of the side that sends.
constexpr PathPolicy policy_for(PathUse use, PathPolicy of_peer) {
  switch (use) {
    case PathUse::automatic:
      break;
    case PathUse::sum:
      return PathPolicy::sum;
    case PathUse::best:
      return PathPolicy::best;
    case PathUse::failover:
      return PathPolicy::failover;
  }
  return of_peer;
}

}  // namespace longhaul::config
