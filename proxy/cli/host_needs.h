// SPDX-License-Identifier: Apache-2.0
// Everything that this host lacks for a configuration, from the parts that know: for `longhaul check` and `init`.
#pragma once
#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul::cli {

struct HostNeeds {
  std::vector<std::string> errors, warnings;
};

// Changes nothing.
HostNeeds host_needs(const config::Config& config);

// The same, and what a running daemon would be in the way of: whether its ports are free; and whether the clock is set.
HostNeeds needs_before_first_start(const config::Config& config);

}  // namespace longhaul::cli
