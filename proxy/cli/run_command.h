// SPDX-License-Identifier: Apache-2.0
// `longhaul run FILE`: the proxy in the foreground. Reads the configuration, and starts the daemon.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

// Exit code 2: the configuration file has a mistake, so that a restart would not help. 1: this host lacks
// something at present.
void add_run_command(CLI::App& app, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
