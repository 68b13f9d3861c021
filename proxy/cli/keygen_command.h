// SPDX-License-Identifier: Apache-2.0
// `longhaul keygen NAME`: creates a site's key and certificate with proxy/identity.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

void add_keygen_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
