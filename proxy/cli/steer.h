// SPDX-License-Identifier: Apache-2.0
// The commands that control a running daemon: status, flows, top, page, why, set, clear-cache, reload,
// intercept. Each sends one or a few requests to the control API; screens.h formats the responses.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

// Adds the commands to the program's command line. The typed command runs while the line is parsed and sets
// the exit code: 0 done, 1 the daemon did not respond or refused (one sentence on `errors`).
void add_steering_commands(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
