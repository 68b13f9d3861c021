// SPDX-License-Identifier: Apache-2.0
// Describes a configuration in plain sentences. Pure.
#pragma once
#include <string>

#include "proxy/config/config.h"

namespace longhaul::cli {

// Several lines, each ended. `fingerprint` is that of the site's own key; empty: it has none.
std::string describe(const config::Config& config, const std::string& fingerprint);

}  // namespace longhaul::cli
