// SPDX-License-Identifier: Apache-2.0
// The output of a command line that was typed.
#pragma once
#include <string>
#include <string_view>

namespace longhaul::cli {

struct Typed {
  int exit_code = -1;
  std::string out, errors;
};

// A screen with the lines put together that were wrapped.
inline std::string unwrapped(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n        ", at)) != std::string::npos;) {
    const auto word = text.find_first_not_of(' ', at + 1);
    text.replace(at, word - at, " ");
  }
  return text;
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace longhaul::cli
