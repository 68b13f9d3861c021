// SPDX-License-Identifier: Apache-2.0
// What the lines to one peer are used for: the values of [[peer]] policy, and of the feature `paths`, by
// which a rule differs from it. Alone in a file because the link's pure part chooses by them and knows
// nothing else of a configuration's peers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace longhaul::config {

// Among the working paths of the lowest cost.
enum class PathPolicy : std::uint8_t {
  sum,       // bulk streams use all of them, everything else the best one
  best,      // everything uses the one with the lowest round-trip time
  failover,  // everything uses the first one, in the file's order
};

inline constexpr std::size_t kPathPolicies = 3;

// What some flows ask for. In the order in which two settings combine: `meet` takes the later of two.
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
