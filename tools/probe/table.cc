// SPDX-License-Identifier: Apache-2.0
// Widths count characters, not bytes: "±" is one.
#include "tools/probe/table.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace longhaul::probe {
namespace {

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

void print_table(const std::vector<std::vector<std::string>>& rows, std::ostream& out) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out << row[i];
      if (i + 1 < row.size()) out << std::string(widths[i] - width_of(row[i]) + 2, ' ');
    }
    out << '\n';
  }
}

std::string fixed(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

std::string rate_text(double bits_per_second) {
  if (bits_per_second >= 1e9) return fixed(bits_per_second / 1e9, 2) + " Gbit/s";
  if (bits_per_second >= 1e6) return fixed(bits_per_second / 1e6, 2) + " Mbit/s";
  return fixed(bits_per_second / 1e3, 2) + " kbit/s";
}

}  // namespace longhaul::probe
