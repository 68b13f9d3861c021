// SPDX-License-Identifier: Apache-2.0
// Exact decimal arithmetic on short texts; each key checks its own range.
#include "proxy/config/units.h"

#include <array>
#include <limits>
#include <span>

namespace longhaul::config {
namespace {

__extension__ using Wide = unsigned __int128;  // a product of two 64-bit numbers

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array kRateUnits{Unit{"gbit", 1'000'000'000}, Unit{"mbit", 1'000'000}, Unit{"kbit", 1'000},
                                Unit{"bit", 1}};
constexpr std::array kSizeUnits{Unit{"TiB", 1ull << 40},
                                Unit{"GiB", 1ull << 30},
                                Unit{"MiB", 1ull << 20},
                                Unit{"KiB", 1ull << 10},
                                Unit{"B", 1},
                                Unit{"", 1}};

bool digit(char c) { return c >= '0' && c <= '9'; }

bool same_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if ((a[i] | 0x20) != (b[i] | 0x20)) return false;
  return true;
}

// DIGITS[.DIGITS] UNIT, exactly: 1.544mbit is 1544000 and not the nearest double.
std::optional<std::uint64_t> parse(std::string_view text, std::span<const Unit> units) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t digits = 0, scale = 1;
  std::size_t i = 0, whole = 0, fraction = 0;
  for (; i < text.size() && (digit(text[i]) || (text[i] == '.' && scale == 1 && fraction == 0)); ++i) {
    if (text[i] == '.') {
      if (whole == 0 || i + 1 == text.size() || !digit(text[i + 1])) return std::nullopt;
      fraction = 1;
      continue;
    }
    const auto value = static_cast<std::uint64_t>(text[i] - '0');
    if (digits > (kMost - value) / 10) return std::nullopt;
    digits = digits * 10 + value;
    if (fraction == 0)
      ++whole;
    else if (scale > kMost / 10)
      return std::nullopt;
    else
      scale *= 10;
  }
  if (whole == 0) return std::nullopt;
  while (i < text.size() && text[i] == ' ') ++i;
  for (const Unit& unit : units) {
    if (!same_ignoring_case(text.substr(i), unit.name)) continue;
    const auto product = static_cast<Wide>(digits) * unit.factor;
    if (product % scale != 0 || product / scale > kMost) return std::nullopt;
    return static_cast<std::uint64_t>(product / scale);
  }
  return std::nullopt;
}

std::string print(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value < unit.factor) continue;
    const std::uint64_t rest = value % unit.factor;
    std::string text = std::to_string(value / unit.factor);
    if (rest != 0) {
      // At most three decimals: 1.544mbit is a common rate, 1.000001gbit is not.
      const std::uint64_t thousandths = rest * 1000;  // at most 1000 TiB: fits
      if (thousandths % unit.factor != 0) continue;
      std::string decimals = std::to_string(1000 + thousandths / unit.factor).substr(1);
      while (decimals.back() == '0') decimals.pop_back();
      text += "." + decimals;
    }
    return text + std::string(unit.name);
  }
  return "0" + std::string(units.back().name);
}

}  // namespace

std::optional<std::uint64_t> parse_rate(std::string_view text) {
  const auto rate = parse(text, kRateUnits);
  return rate == 0u ? std::nullopt : rate;
}

std::optional<std::uint64_t> parse_size(std::string_view text) { return parse(text, kSizeUnits); }

std::string meant_size(std::string_view text) {
  const auto last = text.find_last_of("0123456789");
  if (last == std::string_view::npos || last + 1 == text.size()) return {};
  auto unit = text.substr(last + 1);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : kSizeUnits) {
    if (known.name.size() != 3) continue;
    const std::string_view letter = known.name.substr(0, 1);
    if (!same_ignoring_case(unit, letter) && !same_ignoring_case(unit, std::string(letter) + "B")) continue;
    const std::string meant = std::string(text.substr(0, last + 1)) + std::string(known.name);
    return parse_size(meant) ? meant : "";
  }
  return {};
}

std::string rate_to_text(std::uint64_t bits_per_second) { return print(bits_per_second, kRateUnits); }

std::string size_to_text(std::uint64_t bytes) { return print(bytes, kSizeUnits); }

}  // namespace longhaul::config
