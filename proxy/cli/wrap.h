// SPDX-License-Identifier: Apache-2.0
// Breaks long lines of a screen between words.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul::cli {

constexpr std::size_t kScreenWidth = 100;
constexpr std::size_t kIndent = 12;  // of what follows a title, and of lines that continue another

// `title`, padded to the indent or followed by one space, and `content`, in lines of kScreenWidth at most
// where words allow that. A number stays with the unit that follows it.
std::string titled(std::string_view title, std::string_view content);
// Likewise, where all begins at the left.
std::string wrapped(std::string_view content);
// A text of several lines; each keeps its indent and continues kContinued further right. A line that is a command to
// type, indented by four, stays whole.
constexpr std::size_t kContinued = 8;
std::string wrapped_lines(std::string_view text);

}  // namespace longhaul::cli
