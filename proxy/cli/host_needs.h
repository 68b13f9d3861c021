// SPDX-License-Identifier: Apache-2.0
// Everything that this host lacks for a configuration, collected from all parts, for `longhaul check` and
// `init`.
#pragma once
#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul::cli {

struct HostNeeds {
  std::vector<std::string> errors, warnings;
};

std::string to_text(const HostNeeds& needs);  // one line each

// Changes nothing.
HostNeeds host_needs(const config::Config& config);

// The same, with additional checks that would fail while a daemon runs: whether the ports are free; and
// whether the clock is set.
HostNeeds needs_before_first_start(const config::Config& config);

}  // namespace longhaul::cli
