// SPDX-License-Identifier: Apache-2.0
#include "tools/ttcp/table.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace longhaul::ttcp;

namespace {

Row row(Kind kind, unsigned trial, std::uint64_t received, double seconds) {
  Row row;
  row.test = {kind, trial, 1024, is_padded(kind) ? 12u : 0u, 1000};
  row.packets_sent = 1000;
  row.packets_received = received;
  row.bytes_received = received * 1024;
  row.seconds = seconds;
  row.send_seconds = 0.5;
  row.ended_by = "mark";
  return row;
}

Report report() {
  Report report;
  report.began = "2003-05-01T12:00:00Z";
  report.from = "10.0.0.1";
  report.to = "10.0.0.2";
  report.planned = 4;
  report.rows = {row(Kind::udp, 1, 1000, 1), row(Kind::udp_padded, 1, 500, 2), row(Kind::udp, 2, 900, 3)};
  return report;
}

std::vector<std::vector<std::string>> cells_of(const std::string& text, char separator) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream cells{line};
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, separator);) rows.back().push_back(cell);
  }
  return rows;
}

}  // namespace

TEST_CASE("the text contains every column of the source, first trials and then means") {
  const auto rows = cells_of(to_text(report(), {Column::Group::source}), '\t');
  REQUIRE(rows.size() == 1 + 3 + 2);
  CHECK(rows[0] == std::vector<std::string>{"protocol", "trial", "header", "packet", "packets sent",
                                            "bytes sent", "bytes received", "seconds", "KB/s", "Mbit/s",
                                            "bytes lost", "packets lost", "% received"});
  CHECK(rows[2] == std::vector<std::string>{"UDP+12", "1", "20", "1024", "1000", "1024000", "512000",
                                            "2.000000", "250.00", "2.048", "512000", "500", "50.000"});
  CHECK(rows[4] == std::vector<std::string>{"UDP", "mean", "8", "1024", "1000", "1024000", "972800",
                                            "2.000000", "650.00", "5.325", "51200", "50", "95.000"});
  CHECK(rows[5][1] == "mean");
}

TEST_CASE("means of whole numbers are not rounded to whole numbers") {
  Report of_two = report();
  of_two.rows = {row(Kind::udp, 1, 1000, 1), row(Kind::udp, 2, 999, 1)};
  const auto rows = cells_of(to_text(of_two, {Column::Group::source}), '\t');
  CHECK(rows[3][11] == "0.5");
}

TEST_CASE("the file of an unfinished sweep says that it is unfinished") {
  Report unfinished = report();
  unfinished.note = "interrupted\nby\tsomebody";
  CHECK_THAT(to_text(unfinished, {}), Catch::Contains("# 3 of 4 tests: interrupted by somebody\n"));
  CHECK(to_json(unfinished).at("complete") == false);
  Report finished = report();
  finished.planned = 3;
  CHECK(to_json(finished).at("complete") == true);
}

TEST_CASE("each CSV line has as many cells as the heading, and JSON uses the same names") {
  const auto rows = cells_of(to_csv(report()), ',');
  REQUIRE(rows.size() == 6);
  for (std::size_t i = 1; i <= 3; ++i) CHECK(rows[i].size() == rows[0].size());
  for (std::size_t i = 4; i < 6; ++i)
    CHECK(rows[i].size() == rows[0].size() - 1);  // no ended_by: an empty last cell
  const auto json = to_json(report());
  const auto& first = json.at("rows").as_array().at(0).as_object();
  for (const std::string& name : rows[0]) CHECK(first.contains(name));
}

TEST_CASE("the sender's time is shown beside the receiver's") {
  const Line line = line_of(report().rows[1]);
  for (std::size_t i = 0; i < columns().size(); ++i)
    if (columns()[i].name == "sending_mbit_per_second")
      CHECK(line.values[i] == Approx(1000 * 1024 * 8 / 0.5 / 1e6));
}

TEST_CASE("the number of fragments of a packet follows from the path MTU") {
  const auto fragments = [](Row of) {
    const Line line = line_of(of);
    for (std::size_t i = 0; i < columns().size(); ++i)
      if (columns()[i].name == "fragments_per_packet") return line.values[i];
    return -1.;
  };
  Row of = row(Kind::udp, 1, 1, 1);
  of.path_mtu = 1500;
  for (const auto& [bytes, v4, v6] :
       {std::tuple{1452, 1, 1}, {1453, 1, 2}, {1472, 1, 2}, {1473, 2, 2}, {8192, 6, 6}}) {
    of.test.packet_bytes = bytes;
    of.is_ipv6 = false;
    CHECK(fragments(of) == v4);
    of.is_ipv6 = true;
    CHECK(fragments(of) == v6);
  }
  of.test.kind = Kind::tcp;
  CHECK(fragments(of) == 1);
}

TEST_CASE("a test in which nothing arrived gives zeros and does not divide by them") {
  Row nothing = row(Kind::udp, 1, 0, 0);
  nothing.send_seconds = 0;
  for (const double value : line_of(nothing).values) CHECK(std::isfinite(value));
}

TEST_CASE("a file is replaced as a whole, and a missing folder is named") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("longhaul-ttcp-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = folder / "file";
  write_file(file, "first, and longer");
  write_file(file, "second");
  std::ifstream in(file);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "second");
  CHECK_THROWS_WITH(write_file(folder / "no" / "file", ""), Catch::Contains("/no/file"));
  std::filesystem::remove_all(folder);
}
