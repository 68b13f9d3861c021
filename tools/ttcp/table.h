// SPDX-License-Identifier: Apache-2.0
// A sweep's results as a file for a spreadsheet, as CSV, as JSON, and as a table for the eye. Leaves the
// columns themselves to row.h.
#pragma once
#include <boost/json/object.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/ttcp/row.h"

namespace longhaul::ttcp {

struct Report {
  std::string began;  // ISO 8601, UTC
  std::string from;
  std::string to;
  boost::json::object options;
  std::size_t planned = 0;  // tests; fewer rows: it is not finished
  std::string note;         // why it is not
  std::vector<Row> rows;
};

using Groups = std::set<Column::Group>;

// Tab-separated, one heading line after lines that begin with '#': trials, then means.
std::string to_text(const Report& report, const Groups& groups);
std::string to_csv(const Report& report);  // every column
boost::json::object to_json(const Report& report);
// Means in columns that line up.
std::string to_aligned(const Report& report, const Groups& groups);

// Replaces the file whole, so that an end at any moment leaves the last state. Throws Trouble.
void write_file(const std::string& path, const std::string& content);

}  // namespace longhaul::ttcp
