// SPDX-License-Identifier: Apache-2.0
// `longhaul run FILE`: the proxy in the foreground. The daemon does everything after the configuration.
#pragma once
#include "cli11.h"

namespace longhaul::cli {

void add_run_command(CLI::App& app, int& exit_code);

}  // namespace longhaul::cli
