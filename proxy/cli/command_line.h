// SPDX-License-Identifier: Apache-2.0
// Finds the command, runs it, and turns errors into one sentence and an exit code. Each command has its own
// file.
#pragma once
#include <iosfwd>
#include <span>

namespace longhaul::cli {

enum ExitCode : int { kDone = 0, kFailed = 1, kBadUsage = 2 };  // kBadUsage: nothing was started

// `words`: the arguments of main, the program's name first.
int run_command_line(std::span<const char* const> words, std::ostream& out, std::ostream& errors);

}  // namespace longhaul::cli
