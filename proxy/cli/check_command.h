// SPDX-License-Identifier: Apache-2.0
// `longhaul check FILE`: describes a configuration and checks it on this host. Starts and changes
// nothing.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

// Exit code 2 if the file has a mistake (one sentence on `errors`) or this host cannot run it.
void add_check_command(CLI::App& app, std::ostream& out, int& exit_code);

}  // namespace longhaul::cli
