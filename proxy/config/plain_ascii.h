// SPDX-License-Identifier: Apache-2.0
// Keeps characters beyond ASCII from the parser, and suggests the mistake in a line that the parser rejects.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul::config {

// The same TOML in pure ASCII: other characters become escapes in double-quoted strings, and question marks
// in comments. toml++ 3.3 runs into __builtin_unreachable on many such characters in unexpected places, and
// in a file with mistakes it may treat quoted text as bare; so it receives none of them. Line numbers are
// preserved.
struct PlainAscii {
  std::string text;
  std::size_t foreign_line = 0;  // line of the first character that cannot be converted, from 1; 0: none
};
PlainAscii plain_ascii(std::string_view toml);

// The probable mistake in the line (counted from 1) where the parser failed: a sentence with a leading space,
// or empty.
std::string slip_in_line(std::string_view toml, std::size_t line);

}  // namespace longhaul::config
