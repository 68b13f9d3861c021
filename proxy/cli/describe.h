// SPDX-License-Identifier: Apache-2.0
// Describes a configuration in plain sentences. Pure.
#pragma once
#include <string>

#include "proxy/config/config.h"

namespace longhaul::cli {

// Returns several lines, each with a line end. `fingerprint`: of the site's own key; empty if there is none.
std::string describe(const config::Config& config, const std::string& fingerprint);

}  // namespace longhaul::cli
