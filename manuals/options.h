// SPDX-License-Identifier: Apache-2.0
// The entry to this folder: gives a program the options --manual and --completion, which print what packages
// install, and wraps its --help.
#pragma once
#include <string>
#include <vector>

#include "manuals/manual.h"
#include "manuals/words.h"

namespace longhaul::manuals {

// Call after everything else was added to `app`, which must outlive parsing. Like --help, the options print
// and then end the program.
void add_options(CLI::App& app, const std::string& program, std::vector<Section> sections = {},
                 std::vector<Offer> offers = {});

}  // namespace longhaul::manuals
