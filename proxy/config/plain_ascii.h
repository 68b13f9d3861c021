// SPDX-License-Identifier: Apache-2.0
// Finds characters that TOML allows only inside quotes and comments, before the parser sees them; and
// suggests the mistake in a line that the parser rejects.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace longhaul::config {

// The line of the first non-ASCII byte outside of comments and quotes, such as a curly quotation mark from a
// word processor. toml++ 3.3 runs into __builtin_unreachable on many such characters.
std::optional<std::size_t> line_of_foreign_character(std::string_view toml);

// The probable mistake in the line, counted from 1, where the parser failed: a sentence with a space before
// it, or empty.
std::string slip_in_line(std::string_view toml, std::size_t line);

}  // namespace longhaul::config
