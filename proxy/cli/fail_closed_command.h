// SPDX-License-Identifier: Apache-2.0
// `longhaul fail-closed install|remove|print FILE`: controls the packet rules of fail = "closed", with
// or without a running daemon.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

void add_fail_closed_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
