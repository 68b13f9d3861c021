// SPDX-License-Identifier: Apache-2.0
// `longhaul check FILE`: what a configuration would do, and what stands in its way on this host. Starts and
// changes nothing.
#pragma once
#include <CLI/App.hpp>
#include <iosfwd>

namespace longhaul::cli {

void add_check_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
