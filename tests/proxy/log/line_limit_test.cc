// SPDX-License-Identifier: Apache-2.0
// Tests that many events of one source leave room in the log for others, and that none is forgotten.
#include "proxy/log/line_limit.h"

#include <catch2/catch.hpp>

using longhaul::log::LineLimit;
using namespace std::chrono_literals;

TEST_CASE("a source has so many lines a minute, and the next line counts those that were left out") {
  LineLimit limit(50);
  const LineLimit::TimePoint start{};
  for (unsigned i = 0; i < 50; ++i) CHECK(limit.may_write("a", start + 1s) == 0u);
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(limit.may_write("a", start + 2s));
  CHECK(limit.may_write("b", start + 3s) == 1000u);
  CHECK(limit.may_write("b", start + 3s) == 0u);
  CHECK_FALSE(limit.may_write("a", start + 60s));
  CHECK(limit.may_write("a", start + 61s) == 1u);
}

TEST_CASE("one line a minute") {
  LineLimit limit(1);
  const LineLimit::TimePoint start{};
  CHECK(limit.may_write("a", start));
  CHECK_FALSE(limit.may_write("a", start + 59s));
  CHECK(limit.may_write("b", start + 59s));
  CHECK(limit.may_write("a", start + 60s));
  CHECK_FALSE(limit.may_write("a", start + 61s));
}

TEST_CASE("sources are bounded") {
  LineLimit limit(1);
  std::size_t lines = 0;
  for (std::size_t i = 0; i < 2 * LineLimit::kSources; ++i)
    if (limit.may_write(std::to_string(i), {})) ++lines;
  CHECK(lines == LineLimit::kSources);
}
