// SPDX-License-Identifier: Apache-2.0
// Keeps characters beyond ASCII from the parser, and suggests the mistake in a line that the parser rejects.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul::config {

// The same TOML in ASCII alone: texts in double quotes have escapes for other characters, comments a question mark.
// toml++ 3.3 runs into __builtin_unreachable on many such characters where it expects none, and in a mistaken file it
// takes for bare what TOML's grammar takes for quoted; so it sees none. Lines stay where they are.
struct PlainAscii {
  std::string text;
  std::size_t foreign_line = 0;  // the line of the first character that has no such form, from 1; 0: none
};
PlainAscii plain_ascii(std::string_view toml);

// The probable mistake in the line, counted from 1, where the parser failed: a sentence with a space before
// it, or empty.
std::string slip_in_line(std::string_view toml, std::size_t line);

}  // namespace longhaul::config
