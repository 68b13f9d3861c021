// SPDX-License-Identifier: Apache-2.0
// `longhaul keytab test FILE SERVER`: requests a ticket from the domain, as a client would, and tries to
// decrypt it with a keytab.
#pragma once
#include <iosfwd>

#include "cli11.h"

namespace longhaul::cli {

void add_keytab_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code);

}  // namespace longhaul::cli
