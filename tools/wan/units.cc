// SPDX-License-Identifier: Apache-2.0
// Reads a number with its unit, and refuses what a line could not be set to.
#include "tools/wan/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace longhaul::wan {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

template <std::size_t N>
Parsed<double> scaled(std::string_view text, const std::array<Unit, N>& units, double limit,
                      std::string_view wanted) {
  const auto quantity = parse_quantity(text);
  if (quantity) {
    for (const Unit& unit : units) {
      if (!same_letters(quantity->unit, unit.name)) continue;
      const double value = quantity->number * unit.factor;
      if (value <= limit) return value;
    }
    if (quantity->number == 0 && quantity->unit.empty()) return 0.0;
  }
  return quoted(text) + " is not " + std::string(wanted);
}

}  // namespace

Parsed<Quantity> parse_quantity(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0 || std::signbit(number))
    return quoted(text) + " is not a number with a unit";
  return Quantity{number, text.substr(static_cast<std::size_t>(end - text.data()))};
}

Parsed<std::uint64_t> parse_rate(std::string_view text) {
  if (text == "unlimited") return std::uint64_t{0};
  static constexpr std::array<Unit, 7> kUnits{
      {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}}};
  // Below 1 kbit/s a packet takes longer than any time-out; above 10 Gbit/s nothing here keeps up.
  constexpr std::string_view kWanted = "a rate from 1kbit to 10gbit, or \"unlimited\"";
  const auto value = scaled(text, kUnits, 10e9, kWanted);
  if (!value) return value.error();
  if (*value < 1000) return quoted(text) + " is not " + std::string(kWanted);
  return static_cast<std::uint64_t>(std::llround(*value));
}

Parsed<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  static constexpr std::array<Unit, 4> kUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  const auto value = scaled(text, kUnits, 10e9, "a time from 0 to 10s, such as 50ms");
  if (!value) return value.error();
  return std::chrono::nanoseconds{std::llround(*value)};
}

Parsed<double> parse_share(std::string_view text) {
  static constexpr std::array<Unit, 2> kUnits{{{"", 1}, {"%", 0.01}}};
  return scaled(text, kUnits, 1, "a share from 0 to 1, such as 0.01 or 1%");
}

Parsed<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<Unit, 8> kUnits{{{"", 1},
                                               {"b", 1},
                                               {"kib", 1024},
                                               {"mib", 1024. * 1024},
                                               {"gib", 1024. * 1024 * 1024},
                                               {"kb", 1e3},
                                               {"mb", 1e6},
                                               {"gb", 1e9}}};
  const auto value = scaled(text, kUnits, 1e12, "a number of bytes, such as 65536 or 64KiB");
  if (!value) return value.error();
  return static_cast<std::uint64_t>(std::llround(*value));
}

}  // namespace longhaul::wan
