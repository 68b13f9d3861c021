// SPDX-License-Identifier: Apache-2.0
// `longhaul init`: a key and a minimal configuration for this host, and the one line to type at the other
// site.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

// Questions are written to `errors`, answers are read from `in`, and results are written to `out`.
void add_init_command(CLI::App& app, std::istream& in, std::ostream& out, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
