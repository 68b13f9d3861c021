// SPDX-License-Identifier: Apache-2.0
// `longhaul run FILE`: the proxy in the foreground. The daemon does everything after the configuration.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

// Exit code 2: the configuration file is wrong, so that it is no use to start again. 1: this host lacks something now.
void add_run_command(CLI::App& app, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
