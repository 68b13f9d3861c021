// SPDX-License-Identifier: Apache-2.0
// `--help` in lines that fit a terminal. CLI11 wraps nothing.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul::manuals {

constexpr std::size_t kHelpWidth = 100;

// Breaks lines longer than kHelpWidth between words. What follows the first `column` characters of a line that is
// indented is a description, and its further lines begin there; any other line continues with two blanks.
std::string help_lines(std::string_view text, std::size_t column);

}  // namespace longhaul::manuals
