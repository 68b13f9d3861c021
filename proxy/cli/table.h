// SPDX-License-Identifier: Apache-2.0
// Text for a screen: aligned columns, and numbers with units.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul::cli {

enum class Align : std::uint8_t { left, right };
struct Column {
  std::string title;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);
  void add(std::vector<std::string> row);  // as many cells as there are columns
  bool empty() const { return rows_.empty(); }
  std::size_t width() const;  // length of the longest line
  // Whether the table has this column, and all rows have the same value in it.
  bool says_nothing(std::string_view title) const;
  void remove(std::string_view title);
  bool has(std::string_view title) const;
  // Shortens the cells of this column, but not below eight characters, until the table fits the screen.
  void shorten(std::string_view title);
  // Moves the column to a line of its own below each row.
  void put_below(std::string_view title);
  // Two spaces between columns, none at the end of a line.
  void print(std::ostream& out) const;

 private:
  std::vector<std::size_t> widths() const;
  std::size_t index(std::string_view title) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> below_;  // one line for the titles and one for each row; or empty
};

std::string bytes_text(std::uint64_t bytes);           // "512 B", "1.50 MiB"
std::string rate_text(std::uint64_t bits_per_second);  // "51.8 Mbit/s"
std::string age_text(double seconds);                  // "0.25s", "12s", "3m 5s", "2h 10m", "5d 3h"
std::string milliseconds_text(double milliseconds);    // "0.12 ms", "100 ms"

}  // namespace longhaul::cli
