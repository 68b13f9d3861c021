// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/wrap.h"

#include <algorithm>
#include <utility>

namespace longhaul::cli {

namespace {

std::string continued(std::string text, std::string_view content, std::size_t indent = kIndent) {
  std::size_t width = text.size();
  bool first = true;  // the first word in its line
  while (!content.empty()) {
    // The longest prefix without a place to break: a word, together with its unit if it is a number.
    std::size_t end = content.find(' ');
    if (end != std::string_view::npos &&
        content.substr(0, end).find_first_not_of("0123456789.") == std::string_view::npos)
      end = content.find(' ', end + 1);
    const std::string_view word = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (!first && width + 1 + word.size() > kScreenWidth) {
      text.append("\n").append(indent, ' ');
      width = indent;
      first = true;
    }
    if (!first) text += ' ', ++width;
    text += word;
    width += word.size();
    first = false;
  }
  return text + '\n';
}

}  // namespace

std::string titled(std::string_view title, std::string_view content) {
  std::string text(title);
  if (!content.empty()) text.append(title.size() < kIndent ? kIndent - title.size() : 1, ' ');
  return continued(std::move(text), content);
}

std::string wrapped(std::string_view content) { return continued({}, content); }

std::string wrapped_lines(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (line.size() <= kScreenWidth || line.starts_with("    longhaul "))
      (all += line) += '\n';
    else
      all += continued(std::string(line.substr(0, indent)), line.substr(indent), indent + kContinued);
  }
  return all;
}

}  // namespace longhaul::cli
