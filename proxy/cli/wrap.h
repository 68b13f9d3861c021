// SPDX-License-Identifier: Apache-2.0
// Breaks long lines of a screen between words.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul::cli {

constexpr std::size_t kScreenWidth = 100;
constexpr std::size_t kIndent = 12;  // of the text after a title, and of continuation lines

// `title`, padded to the indent or followed by one space, and `content`, in lines of at most kScreenWidth,
// unless a word is longer. A number is not separated from its unit.
std::string titled(std::string_view title, std::string_view content);
// The same without a title and indent.
std::string wrapped(std::string_view content);
// Wraps a text of several lines; each keeps its indent, and its continuation is indented by kContinued more.
// Commands to type, which are indented by four, are not wrapped.
constexpr std::size_t kContinued = 8;
std::string wrapped_lines(std::string_view text);

}  // namespace longhaul::cli
