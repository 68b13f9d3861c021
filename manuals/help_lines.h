// SPDX-License-Identifier: Apache-2.0
// Wraps the lines of `--help` for a terminal, because CLI11 does not.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul::manuals {

constexpr std::size_t kHelpWidth = 100;

// Breaks lines longer than kHelpWidth between words. In an indented line, the text after the first `column`
// characters is a description, whose further lines begin there. Any other line continues with an indent of
// two spaces.
std::string help_lines(std::string_view text, std::size_t column);

}  // namespace longhaul::manuals
