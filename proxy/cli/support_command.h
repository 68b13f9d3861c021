// SPDX-License-Identifier: Apache-2.0
// `longhaul support`: one archive with everything that a report of a problem needs, without secrets.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

void add_support_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
