// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/over_time.h"

#include <catch2/catch.hpp>
#include <sstream>

using namespace longhaul::probe;

namespace {

Path path_with(std::optional<double> bits, double at_least, double delay_us = 1000, double loss = 0) {
  Path path;
  path.hops.push_back({.limit = 1});
  Link link{.from = 0, .to = 1};
  link.fit.there = {.bits_per_second = bits, .low = at_least, .high = bits};
  link.fit.delay_us = delay_us;
  link.loss = {.value = loss, .low = 0, .high = 1};
  path.links.push_back(link);
  return path;
}

std::string printed(const OverTime& over_time) {
  std::ostringstream out;
  over_time.print(out);
  return out.str();
}

}  // namespace

TEST_CASE("over time: a link that was once too fast to measure is not reported as steadily slow") {
  OverTime over_time;
  over_time.add(path_with(10e6, 9e6, 2000, 0.01), "10:00");
  over_time.add(path_with(std::nullopt, 400e6, 5000), "10:01");
  over_time.add(path_with(4e6, 3.9e6), "10:02");
  const std::string text = printed(over_time);
  INFO(text);
  CHECK(text.find("over 3 measurements, 10:00 to 10:02\n") != std::string::npos);
  const std::string row = text.substr(text.find("\n1 "));
  for (const char* words :
       {"4.00 Mbit/s", "10.00 Mbit/s", "over 400.00 Mbit/s", " 1.00 ", " 5.00 ", "1.00\n"})
    CHECK(row.find(words) != std::string::npos);
  CHECK(row.find("4.00 Mbit/s") < row.find("10.00 Mbit/s"));
  CHECK(row.find("10.00 Mbit/s") < row.find("over 400.00 Mbit/s"));
}

TEST_CASE("over time: outages are counted") {
  OverTime over_time;
  over_time.add(path_with(10e6, 9e6), "10:00");
  over_time.add_failure("10:01");
  CHECK(over_time.measurements() == 2);
  CHECK(printed(over_time).find("over 2 measurements, 10:00 to 10:01, of which 1 failed") !=
        std::string::npos);
}
