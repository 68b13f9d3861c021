// SPDX-License-Identifier: Apache-2.0
// What the lines to one peer are used for: the values of [[peer]] policy. Alone in a file because the link's
// pure part chooses by them and knows nothing else of a configuration's peers.
#pragma once
#include <cstdint>

namespace longhaul::config {

// Among the working paths of the lowest cost.
enum class PathPolicy : std::uint8_t {
  sum,       // bulk streams use all of them, everything else the best one
  best,      // everything uses the one with the lowest round-trip time
  failover,  // everything uses the first one, in the file's order
};

}  // namespace longhaul::config
