// SPDX-License-Identifier: Apache-2.0
// The part of TOML's grammar that separates quotes and comments from the rest; right up to the first mistake
// of a text, where the parser stops too.
#include "proxy/config/plain_ascii.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <optional>

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
      // Up to two more quotes belong to the text itself.
      for (int i = 0; i < 2 && at < text.size() && text[at] == quote; ++i) ++at;
      return at;
    } else if (!many_lines && (text[at] == quote || text[at] == '\n')) {
      return text[at] == quote ? at + 1 : at;
    }
  }
  return text.size();
}

// The length of a UTF-8 sequence and its character (RFC 3629, section 4); a length of 0 if it is not UTF-8.
struct Character {
  std::size_t length = 0;
  std::uint32_t code = 0;
};

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  const std::size_t length = byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : byte(0) < 0xf5 ? 4 : 0;
  if (length == 0 || text.size() - at < length) return {};
  std::uint32_t code = byte(0) & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[length] || code > 0x10ffff || surrogate ? Character{} : Character{length, code};
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

std::size_t line_of(std::string_view toml, std::size_t at) {
  const std::string_view before = toml.substr(0, at);
  return static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
}

// Appends text[at, end), a text in double quotes, with escapes for its characters beyond ASCII. Returns the
// position of a character that has no escape: after a backslash, or not UTF-8.
std::optional<std::size_t> append_escaped(std::string& to, std::string_view text, std::size_t at, std::size_t end) {
  while (at < end) {
    const bool escape = text[at] == '\\' && at + 1 < end;
    if (escape && !is_ascii(text[at + 1])) return at + 1;
    if (is_ascii(text[at])) {
      const std::size_t length = escape ? 2 : 1;
      to.append(text, at, length);
      at += length;
      continue;
    }
    const Character character = character_at(text, at);
    if (character.length == 0) return at;
    fmt::format_to(std::back_inserter(to), "\\U{:08x}", character.code);
    at += character.length;
  }
  return std::nullopt;
}

}  // namespace

PlainAscii plain_ascii(std::string_view toml) {
  PlainAscii result;
  result.text.reserve(toml.size());
  std::size_t at = toml.starts_with("\xef\xbb\xbf") ? 3 : 0;  // without a byte order mark
  while (at < toml.size()) {
    const char c = toml[at];
    if (c == '"') {
      const std::size_t end = after_quotes(toml, at);
      if (const auto wrong = append_escaped(result.text, toml, at, end)) return {{}, line_of(toml, *wrong)};
      at = end;
    } else if (c == '\'') {
      const std::string_view quoted = toml.substr(at, after_quotes(toml, at) - at);
      const auto wrong = std::find_if_not(quoted.begin(), quoted.end(), is_ascii);
      if (wrong != quoted.end()) return {{}, line_of(toml, at + static_cast<std::size_t>(wrong - quoted.begin()))};
      result.text += quoted;
      at += quoted.size();
    } else if (c == '#') {
      for (; at < toml.size() && toml[at] != '\n'; ++at) result.text += is_ascii(toml[at]) ? toml[at] : '?';
    } else if (!is_ascii(c)) {
      return {{}, line_of(toml, at)};
    } else {
      result.text += c;
      ++at;
    }
  }
  return result;
}

namespace {

// A name, an address, or a number with a unit: words that TOML requires quotes for.
bool is_text(std::string_view word) {
  if (word.empty() || word == "true" || word == "false" || word.starts_with('{')) return false;
  return word.find_first_not_of("0123456789_+-.") != std::string_view::npos || std::ranges::count(word, '.') > 1;
}

}  // namespace

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
  const bool list = toml[value] == '[';
  for (at = list ? value + 1 : value; at < toml.size() && toml[at] != '#';) {
    const char c = toml[at];
    if (c == '"' || c == '\'') {
      at = after_quotes(toml, at);
    } else if (list && std::string_view(" \t\r,[]").find(c) != std::string_view::npos) {
      ++at;
    } else {
      const std::string_view word = toml.substr(at, toml.find_first_of(list ? " \t\r#,]" : " \t\r#", at) - at);
      return is_text(word) ? " A text needs quotes: \"" + std::string(word) + "\"." : std::string();
    }
  }
  return {};
}

}  // namespace longhaul::config
