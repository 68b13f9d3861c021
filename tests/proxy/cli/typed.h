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

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace longhaul::cli
