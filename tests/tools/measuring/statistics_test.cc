// SPDX-License-Identifier: Apache-2.0
// The figures of samples whose figures are known.
#include "tools/measuring/statistics.h"

#include <catch2/catch.hpp>
#include <numeric>

using namespace longhaul::measuring;

TEST_CASE("the summary of 1 to 100 has the same quantiles as a spreadsheet", "[measuring]") {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1.0);  // unsorted
  const Summary summary = summarize(values);
  CHECK(summary.count == 100);
  CHECK(summary.least == 1);
  CHECK(summary.most == 100);
  CHECK(summary.mean == Approx(50.5));
  CHECK(summary.median == Approx(50.5));
  CHECK(summary.p95 == Approx(95.05));
  CHECK(summary.p99 == Approx(99.01));
  CHECK(summary.deviation == Approx(29.011492));
}

TEST_CASE("a summary of no value or one value does not divide by zero", "[measuring]") {
  CHECK(summarize({}).count == 0);
  const Summary one = summarize({7});
  CHECK(one.count == 1);
  CHECK(one.median == 7);
  CHECK(one.p99 == 7);
  CHECK(one.deviation == 0);
}

TEST_CASE("large values that lie close together keep their deviation", "[measuring]") {
  CHECK(summarize({1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}).deviation == Approx(5.477226));
}
