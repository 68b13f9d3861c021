// SPDX-License-Identifier: Apache-2.0
// `longhaul keytab test FILE SERVER`: asks the domain for a ticket, as a client would, and tries a keytab on
// it.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

void add_keytab_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
