// SPDX-License-Identifier: Apache-2.0
// Completion scripts for shells: commands, options, choices, files. They contain only words and never start
// the program.
#pragma once
#include <string>

#include "manuals/words.h"

namespace longhaul::manuals {

std::string bash_completion(const std::string& program, const Command& command);
std::string zsh_completion(const std::string& program, const Command& command);
std::string fish_completion(const std::string& program, const Command& command);

}  // namespace longhaul::manuals
