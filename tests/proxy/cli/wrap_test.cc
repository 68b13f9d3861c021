// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/wrap.h"

#include <catch2/catch.hpp>
#include <random>
#include <sstream>
#include <vector>

using namespace longhaul::cli;

namespace {

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

}  // namespace

TEST_CASE("a title and its content stand in columns") {
  CHECK(titled("flows", "1 live") == "flows       1 live\n");
  CHECK(titled("a-long-title:", "x") == "a-long-title: x\n");
  CHECK(titled("alone", "") == "alone\n");
  CHECK(titled("", "continued") == "            continued\n");
}

TEST_CASE("long content continues below its beginning, and a number stays with its unit") {
  std::string content;
  for (int i = 0; i < 60; ++i)
    content += (i > 0 ? " " : "") + std::string(i % 3 == 0 ? "credit" : "12.5 MiB");
  const auto all = lines(titled("memory", content));
  CHECK(all.size() > 4);
  std::string joined;
  for (const auto& line : all) {
    CHECK(line.size() <= kScreenWidth);
    CHECK_FALSE(line.ends_with("12.5"));
    CHECK(line.find_first_not_of(' ') == (&line == &all.front() ? 0 : kIndent));
    joined += (joined.empty() ? "" : " ") + line.substr(kIndent);
  }
  CHECK(joined == content);
}

TEST_CASE("each line of a text keeps its indent and continues further right, and commands stay whole") {
  const std::string words = "one two three four five six seven eight nine ten eleven twelve";
  const std::string command = "    longhaul fail-closed remove /" + std::string(100, 'f') + " --x\n";
  CHECK(wrapped_lines("short\n  shorter\n") == "short\n  shorter\n");
  CHECK(wrapped_lines("") == "");
  CHECK(wrapped_lines(command) == command);
  const auto all = lines(wrapped_lines("title:\n  " + words + " " + words + "\nnext"));
  REQUIRE(all.size() == 4);
  CHECK(all[0] == "title:");
  CHECK(all[1].starts_with("  one two"));
  CHECK(all[1].size() <= kScreenWidth);
  CHECK(all[2].find_first_not_of(' ') == 2 + kContinued);
  CHECK(all[1].substr(2) + " " + all[2].substr(2 + kContinued) == words + " " + words);
  CHECK(all[3] == "next");
}

TEST_CASE("no word is lost or torn, however long") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string content;
    for (int words = static_cast<int>(random() % 40); words > 0; --words)
      content += (content.empty() ? "" : " ") +
                 std::string(1 + random() % (round % 7 == 0 ? 150 : 15), random() % 3 ? 'w' : '7');
    std::string joined;
    for (const auto& line : lines(titled("t", content)))
      if (line.size() > kIndent) joined += (joined.empty() ? "" : " ") + line.substr(kIndent);
    CHECK(joined == content);
  }
}
