// SPDX-License-Identifier: Apache-2.0
// Tests how numbers and columns are written for a screen.
#include "proxy/cli/table.h"

#include <catch2/catch.hpp>
#include <sstream>

using namespace longhaul::cli;

TEST_CASE("bytes and rates use the unit that gives a number of at least one") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.00 KiB");
  CHECK(bytes_text(1536) == "1.50 KiB");
  CHECK(bytes_text(100 * 1024) == "100 KiB");
  CHECK(bytes_text((1u << 20) - 1) == "1.00 MiB");
  CHECK(bytes_text(512u << 20) == "512 MiB");
  CHECK(bytes_text(~0ull) == "16.0 EiB");
  CHECK(rate_text(0) == "0 bit/s");
  CHECK(rate_text(64'000) == "64.0 kbit/s");
  CHECK(rate_text(51'840'000) == "51.8 Mbit/s");
  CHECK(rate_text(999'999'999) == "1.00 Gbit/s");
}

TEST_CASE("ages show two units, round trips three digits") {
  CHECK(age_text(0) == "0s");
  CHECK(age_text(-1) == "0s");
  CHECK(age_text(0.25) == "0.25s");
  CHECK(age_text(3) == "3s");
  CHECK(age_text(9.999) == "9s");
  CHECK(age_text(59.9) == "59s");
  CHECK(age_text(60) == "1m");
  CHECK(age_text(3725) == "1h 2m");
  CHECK(age_text(86'400 * 5 + 3 * 3600) == "5d 3h");
  CHECK(milliseconds_text(0.118) == "0.12 ms");
  CHECK(milliseconds_text(100.25) == "100 ms");
}

TEST_CASE("columns are aligned, numbers to the right, without trailing blanks") {
  Table table{{{"NAME"}, {"N", Align::right}, {"LAST"}}};
  CHECK(table.empty());
  table.add({"a", "1", "x"});
  table.add({"longer", "1000", ""});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() ==
        "NAME       N  LAST\n"
        "a          1  x\n"
        "longer  1000\n");
}

TEST_CASE("a table that is too wide has shorter cells, or a column below its rows") {
  Table table{{{"N", Align::right}, {"PEER"}, {"LAST"}}};
  table.add({"1", std::string(63, 'p'), std::string(60, 'x')});
  table.add({"22", "b", ""});
  std::ostringstream out;
  table.shorten("PEER");
  CHECK(table.width() == 100);
  table.print(out);
  CHECK(out.str().find(" 1  " + std::string(32, 'p') + "..  xxx") != std::string::npos);

  Table stacked{{{"N", Align::right}, {"FROM"}, {"TO"}}};
  stacked.add({"1", "a", "b"});
  stacked.add({"22", "c", std::string(200, 'd')});
  stacked.put_below("TO");
  std::ostringstream lines;
  stacked.print(lines);
  CHECK(lines.str() ==
        " N  FROM\n"
        "    TO\n"
        " 1  a\n"
        "    b\n"
        "22  c\n"
        "    " + std::string(94, 'd') + "..\n");
}

TEST_CASE("a table knows its width and leaves out columns") {
  Table table{{{"NAME"}, {"SAME"}, {"NUMBER", Align::right}}};
  table.add({"long-name", "-", "7"});
  table.add({"b", "-", "8"});
  CHECK(table.width() == 9 + 2 + 4 + 2 + 6);
  CHECK(table.says_nothing("SAME"));
  CHECK_FALSE(table.says_nothing("NUMBER"));
  table.remove("SAME");
  CHECK_FALSE(table.has("SAME"));
  CHECK(table.has("NUMBER"));
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() == "NAME       NUMBER\nlong-name       7\nb               8\n");
}
