// SPDX-License-Identifier: Apache-2.0
// Escapes texts, and prints numbers with as few digits as identify them.
#include "proxy/log/line.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace longhaul::log {
namespace {

std::string_view name(Level level) {
  switch (level) {
    case Level::error:
      return "error";
    case Level::warn:
      return "warn";
    case Level::info:
      return "info";
    case Level::debug:
      return "debug";
    case Level::trace:
      return "trace";
    case Level::off:
      break;
  }
  return "off";
}

void append_time(std::string& line, WallTime now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now - seconds).count();
  fmt::format_to(std::back_inserter(line), "{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                 fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), milliseconds);
}

// Length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629 section 4), 0 if there is none.
std::size_t sequence(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](std::size_t i) { return (at(i) & 0xc0u) == 0x80u; };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned least = lead == 0xe0 ? 0xa0 : 0x80, most = lead == 0xed ? 0x9f : 0xbf;
    return at(1) >= least && at(1) <= most && tail(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned least = lead == 0xf0 ? 0x90 : 0x80, most = lead == 0xf4 ? 0x8f : 0xbf;
    return at(1) >= least && at(1) <= most && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

// C0, DEL and, in UTF-8, C1: characters that a terminal may interpret.
bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  return character.size() == 1 ? lead < 0x20 || lead == 0x7f
                               : lead == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

// Calls `good` with each printable character and `bad` with each piece that must be escaped.
template <class Good, class Bad>
void each_character(std::string_view text, Good good, Bad bad) {
  while (!text.empty()) {
    const std::size_t length = sequence(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_control(character))
      bad(character, length != 0);
    else
      good(character);
    text.remove_prefix(character.size());
  }
}

bool needs_quotes(std::string_view text) {
  for (unsigned char c : text)
    if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c == 0x7f) return true;
  return text.empty();
}

void append_text(std::string& line, std::string_view text) {
  std::string escaped;
  bool quote = needs_quotes(text);
  each_character(
      text,
      [&](std::string_view c) {
        if (c == "\"" || c == "\\") escaped += '\\';
        escaped += c;
      },
      [&](std::string_view bytes, bool) {
        quote = true;
        if (bytes == "\n" || bytes == "\t" || bytes == "\r") {
          escaped += bytes == "\n" ? "\\n" : bytes == "\t" ? "\\t" : "\\r";
          return;
        }
        for (char c : bytes)
          fmt::format_to(std::back_inserter(escaped), "\\x{:02x}", static_cast<unsigned char>(c));
      });
  line += quote ? '"' + escaped + '"' : escaped;
}

void append_json_text(std::string& line, std::string_view text) {
  line += '"';
  each_character(
      text,
      [&](std::string_view c) {
        if (c == "\"" || c == "\\") line += '\\';
        line += c;
      },
      [&](std::string_view bytes, bool well_formed) {
        if (!well_formed)
          line += "\\ufffd";
        else
          // One byte is its own code point; C1 is the two bytes c2 80 to c2 9f, whose second is the code
          // point.
          fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<unsigned char>(bytes.back()));
      });
  line += '"';
}

void append_number(std::string& line, double number, std::string_view not_a_number) {
  if (std::isfinite(number))
    fmt::format_to(std::back_inserter(line), "{}", number);
  else
    line += not_a_number;
}

void append_event(std::string& line, std::string_view event, Fields fields) {
  append_text(line, event);
  for (const Field& field : fields) {
    (line += ' ') += field.key;
    line += '=';
    std::visit(
        [&]<class T>(const T& value) {
          if constexpr (std::is_same_v<T, std::string_view>)
            append_text(line, value);
          else if constexpr (std::is_same_v<T, double>)
            append_number(line, value, "none");
          else
            fmt::format_to(std::back_inserter(line), "{}", value);
        },
        field.value.get());
  }
}

}  // namespace

std::string time_text(WallTime now) {
  std::string text;
  append_time(text, now);
  return text;
}

std::string key_value_line(WallTime now, Level level, std::string_view event, Fields fields) {
  std::string line;
  line.reserve(128);
  append_time(line, now);
  (line += ' ') += name(level);
  line += ' ';
  append_event(line, event, fields);
  return line;
}

std::string event_text(std::string_view event, Fields fields) {
  std::string text;
  append_event(text, event, fields);
  return text;
}

std::string json_line(WallTime now, Level level, std::string_view event, Fields fields) {
  std::string line = "{\"time\":\"";
  line.reserve(192);
  append_time(line, now);
  ((line += "\",\"level\":\"") += name(level)) += "\",\"event\":";
  append_json_text(line, event);
  for (const Field& field : fields) {
    line += ',';
    append_json_text(line, field.key);
    line += ':';
    std::visit(
        [&]<class T>(const T& value) {
          if constexpr (std::is_same_v<T, std::string_view>)
            append_json_text(line, value);
          else if constexpr (std::is_same_v<T, double>)
            append_number(line, value, "null");
          else
            fmt::format_to(std::back_inserter(line), "{}", value);
        },
        field.value.get());
  }
  return line + "}";
}

}  // namespace longhaul::log
