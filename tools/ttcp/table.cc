// SPDX-License-Identifier: Apache-2.0
// See table.h.
#include "tools/ttcp/table.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tools/measuring/trouble.h"

namespace longhaul::ttcp {
namespace {

std::string to_fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

bool is_whole(double value) { return value == static_cast<double>(static_cast<long long>(value)); }

// A mean of whole numbers need not be whole.
std::string cell(const Line& line, std::size_t column) {
  const double value = line.values[column];
  const int decimals = columns()[column].decimals;
  return to_fixed(value, decimals == 0 && !is_whole(value) ? 1 : decimals);
}

boost::json::value to_number(double value, int decimals) {
  if (decimals == 0 && is_whole(value)) return static_cast<std::int64_t>(value);
  return value;
}

std::vector<Line> lines_of(const Report& report) {
  std::vector<Line> lines;
  for (const Row& row : report.rows) lines.push_back(line_of(row));
  for (Line& mean : means_of(report.rows)) lines.push_back(std::move(mean));
  return lines;
}

std::string progress_of(const Report& report) {
  std::string text = std::to_string(report.rows.size()) + " of " + std::to_string(report.planned) + " tests";
  if (!report.note.empty()) text += ": " + report.note;
  return text;
}

// A text of the outside world on one line of a file.
std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

}  // namespace

std::string to_text(const Report& report, const Groups& groups) {
  std::string text =
      "# longhaul-ttcp sweep, " + report.began + ", from " + on_one_line(report.from) + " to " +
      on_one_line(report.to) + "\n# " + on_one_line(progress_of(report)) + "\n" +
      "# bytes: of data; header: TCP 20, UDP 8 and the padding; KB: 1024 bytes; Mbit: 10^6 bits\n";
  text += "protocol\ttrial";
  for (const Column& column : columns())
    if (groups.contains(column.group)) text += "\t" + std::string(column.heading);
  text += "\n";
  for (const Line& line : lines_of(report)) {
    text += line.protocol + "\t" + line.trial;
    for (std::size_t i = 0; i < columns().size(); ++i)
      if (groups.contains(columns()[i].group)) text += "\t" + cell(line, i);
    text += "\n";
  }
  return text;
}

std::string to_csv(const Report& report) {
  std::string text = "protocol,trial";
  for (const Column& column : columns()) text += "," + std::string(column.name);
  text += ",ended_by\n";
  for (const Line& line : lines_of(report)) {
    text += line.protocol + "," + line.trial;
    for (std::size_t i = 0; i < columns().size(); ++i) text += "," + cell(line, i);
    text += "," + line.ended_by + "\n";
  }
  return text;
}

boost::json::object to_json(const Report& report) {
  const auto to_objects = [](std::span<const Line> lines) {
    boost::json::array objects;
    for (const Line& line : lines) {
      boost::json::object object;
      object["protocol"] = line.protocol;
      if (line.trial != "mean") object["trial"] = std::stoul(line.trial);
      for (std::size_t i = 0; i < columns().size(); ++i)
        object[columns()[i].name] = to_number(line.values[i], columns()[i].decimals);
      if (!line.ended_by.empty()) object["ended_by"] = line.ended_by;
      objects.push_back(std::move(object));
    }
    return objects;
  };
  std::vector<Line> rows;
  for (const Row& row : report.rows) rows.push_back(line_of(row));
  boost::json::object json;
  json["tool"] = "longhaul-ttcp";
  json["began"] = report.began;
  json["from"] = report.from;
  json["to"] = report.to;
  json["options"] = report.options;
  json["planned"] = report.planned;
  json["complete"] = report.rows.size() == report.planned;
  json["note"] = report.note;
  json["rows"] = to_objects(rows);
  json["means"] = to_objects(means_of(report.rows));
  return json;
}

std::string to_aligned(const Report& report, const Groups& groups) {
  std::vector<std::vector<std::string>> cells{{"protocol"}};
  for (const Column& column : columns())
    if (groups.contains(column.group)) cells.front().emplace_back(column.heading);
  for (const Line& line : means_of(report.rows)) {
    cells.push_back({line.protocol});
    for (std::size_t i = 0; i < columns().size(); ++i)
      if (groups.contains(columns()[i].group)) cells.back().push_back(cell(line, i));
  }
  std::vector<std::size_t> widths(cells.front().size());
  for (const auto& row : cells)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : cells) {
    text += row[0] + std::string(widths[0] - row[0].size(), ' ');
    for (std::size_t i = 1; i < row.size(); ++i)
      text += "  " + std::string(widths[i] - row[i].size(), ' ') + row[i];
    text += "\n";
  }
  return text;
}

void write_file(const std::string& path, const std::string& content) {
  const std::string beside = path + ".new";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << content << std::flush;
  if (!file) throw measuring::Trouble("cannot write " + beside + ": " + std::strerror(errno));
  file.close();
  std::error_code error;
  std::filesystem::rename(beside, path, error);
  if (error) throw measuring::Trouble("cannot write " + path + ": " + error.message());
}

}  // namespace longhaul::ttcp
