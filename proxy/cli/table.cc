// SPDX-License-Identifier: Apache-2.0
// Widths are counted in bytes, because all texts are addresses, names and codes.
#include "proxy/cli/table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <span>
#include <string_view>
#include <utility>

#include "proxy/cli/wrap.h"

namespace longhaul::cli {
namespace {

// Three significant digits: 1.23, 12.3, 123.
std::string three_digits(double value) {
  std::array<char, 32> text;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  const int length = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return {text.data(), static_cast<std::size_t>(length)};
}

// The largest unit that leaves a number of at least one; whole numbers of the first unit stay whole.
std::string with_unit(std::uint64_t number, double step, std::span<const std::string_view> units) {
  if (static_cast<double>(number) < step) return std::to_string(number) + " " + std::string(units.front());
  auto value = static_cast<double>(number);
  std::size_t unit = 0;
  for (; value >= step * 0.9995 && unit + 1 < units.size(); ++unit) value /= step;
  return three_digits(value) + " " + std::string(units[unit]);
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> row) {
  assert(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    std::size_t width = columns_[column].title.size();
    for (const auto& row : rows_) width = std::max(width, row[column].size());
    widths.push_back(width);
  }
  return widths;
}

std::size_t Table::width() const {
  std::size_t width = 0;
  for (const std::size_t each : widths()) width += each + (width > 0 ? 2 : 0);
  return width;
}

bool Table::says_nothing(std::string_view title) const {
  const std::size_t column = index(title);
  return std::ranges::all_of(rows_, [&](const auto& row) { return row[column] == rows_.front()[column]; });
}

void Table::remove(std::string_view title) {
  const auto column = static_cast<std::ptrdiff_t>(index(title));
  columns_.erase(columns_.begin() + column);
  for (auto& row : rows_) row.erase(row.begin() + column);
}

void Table::shorten(std::string_view title) {
  if (width() <= kScreenWidth) return;
  const std::size_t column = index(title);
  const std::size_t too_much = width() - kScreenWidth, now = widths()[column];
  const std::size_t most = std::max<std::size_t>(8, now - std::min(now, too_much));
  for (auto& row : rows_)
    if (std::string& cell = row[column]; cell.size() > most) cell.replace(most - 2, std::string::npos, "..");
}

void Table::put_below(std::string_view title) {
  const std::size_t column = index(title);
  below_.push_back(columns_[column].title);
  for (const auto& row : rows_) below_.push_back(row[column]);
  remove(title);
}

bool Table::has(std::string_view title) const {
  return std::ranges::find(columns_, title, &Column::title) != columns_.end();
}

std::size_t Table::index(std::string_view title) const {
  const auto found = std::ranges::find(columns_, title, &Column::title);
  assert(found != columns_.end());
  return static_cast<std::size_t>(found - columns_.begin());
}

void Table::print(std::ostream& out) const {
  const std::vector<std::size_t> widths = this->widths();
  const auto print_line = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const std::string& cell = cell_of(column);
      const std::string padding(widths[column] - cell.size(), ' ');
      if (column > 0) line += "  ";
      line += columns_[column].align == Align::right ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  // Under the second column, and never wider than the screen.
  const auto print_below = [&](std::size_t line) {
    if (below_.empty()) return;
    const std::size_t indent = widths.front() + 2;
    std::string text = below_[line];
    if (indent + text.size() > kScreenWidth) text.replace(kScreenWidth - indent - 2, std::string::npos, "..");
    out << std::string(indent, ' ') << text << '\n';
  };
  print_line([&](std::size_t column) -> const std::string& { return columns_[column].title; });
  print_below(0);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    print_line([&](std::size_t column) -> const std::string& { return rows_[i][column]; });
    print_below(i + 1);
  }
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 7> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return with_unit(bytes, 1024, units);
}

std::string rate_text(std::uint64_t bits_per_second) {
  static constexpr std::array<std::string_view, 5> units{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  return with_unit(bits_per_second, 1000, units);
}

std::string age_text(double seconds) {
  if (!(seconds > 0)) return "0s";
  if (seconds < 9.995 && seconds != std::floor(seconds)) return three_digits(seconds) + "s";
  const auto whole = static_cast<std::uint64_t>(std::min(seconds, 1e15));
  const auto two = [](std::uint64_t large, const char* large_unit, std::uint64_t small,
                      const char* small_unit) {
    return std::to_string(large) + large_unit + (small == 0 ? "" : " " + std::to_string(small) + small_unit);
  };
  if (whole < 60) return std::to_string(whole) + "s";
  if (whole < 3600) return two(whole / 60, "m", whole % 60, "s");
  if (whole < 86'400) return two(whole / 3600, "h", whole % 3600 / 60, "m");
  return two(whole / 86'400, "d", whole % 86'400 / 3600, "h");
}

std::string milliseconds_text(double milliseconds) {
  return three_digits(std::max(milliseconds, 0.0)) + " ms";
}

}  // namespace longhaul::cli
