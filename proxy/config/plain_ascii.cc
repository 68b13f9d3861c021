// SPDX-License-Identifier: Apache-2.0
// The part of TOML's grammar that separates quotes and comments from the rest; right up to the first mistake
// of a text, where the parser stops too.
#include "proxy/config/plain_ascii.h"

#include <algorithm>

namespace longhaul::config {
namespace {

// The end of the quoted text that begins at `at`; an unfinished one-line text ends with its line.
std::size_t after_quotes(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
  const bool many_lines = text.substr(at).starts_with(three);
  for (at += many_lines ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (many_lines && text.substr(at).starts_with(three)) {
      at += 3;
      // Up to two quotes more belong to the text itself.
      for (int i = 0; i < 2 && at < text.size() && text[at] == quote; ++i) ++at;
      return at;
    } else if (!many_lines && (text[at] == quote || text[at] == '\n')) {
      return text[at] == quote ? at + 1 : at;
    }
  }
  return text.size();
}

// A quotation mark that follows a bare key or value directly begins no quoted text: the parser reads on to the end of
// the bare one before it reports that.
bool is_behind_bare_text(std::string_view text, std::size_t at) {
  constexpr std::string_view kSeparators = " \t\r\n=,.[]{}\"'";
  return kSeparators.find(text[at - 1]) == std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> line_of_foreign_character(std::string_view toml) {
  const std::size_t begin = toml.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark may come first
  std::size_t at = begin;
  while (at < toml.size()) {
    const char c = toml[at];
    if ((c == '"' || c == '\'') && (at == begin || !is_behind_bare_text(toml, at))) {
      at = after_quotes(toml, at);
    } else if (c == '#') {
      at = std::min(toml.find('\n', at), toml.size());
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return static_cast<std::size_t>(std::count(toml.begin(), toml.begin() + at, '\n')) + 1;
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

std::string slip_in_line(std::string_view toml, std::size_t line) {
  for (; line > 1; --line) {
    const auto end = toml.find('\n');
    if (end == std::string_view::npos) return {};
    toml.remove_prefix(end + 1);
  }
  toml = toml.substr(0, toml.find('\n'));
  std::size_t at = 0;
  while (at < toml.size() && toml[at] != '#') {
    const char c = toml[at];
    if (c != '"' && c != '\'') {
      ++at;
      continue;
    }
    const auto end = after_quotes(toml, at);
    if (end == toml.size() && (end == at + 1 || toml[end - 1] != c)) return std::string(" A closing ") + c + " is missing.";
    at = end;
  }
  // A text without quotes: KEY = word
  const auto equals = toml.find('=');
  if (equals == std::string_view::npos) return {};
  const auto value = toml.find_first_not_of(" \t", equals + 1);
  if (value == std::string_view::npos) return " There is no value after the equals sign.";
  const bool letter = (toml[value] | 0x20) >= 'a' && (toml[value] | 0x20) <= 'z';
  const std::string_view word = toml.substr(value, toml.find_first_of(" \t\r#", value) - value);
  if ((letter || toml[value] == '/') && word != "true" && word != "false")
    return " A text needs quotes: \"" + std::string(word) + "\".";
  return {};
}

}  // namespace longhaul::config
