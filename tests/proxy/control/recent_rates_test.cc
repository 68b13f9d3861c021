// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/recent_rates.h"

#include <catch2/catch.hpp>

using namespace longhaul::control;
using namespace std::chrono_literals;

TEST_CASE("recent rates are those of the last five seconds, and none where there is nothing to compare") {
  RecentRates rates;
  const RecentRates::TimePoint start;
  CHECK_FALSE(rates.flows());
  for (std::uint64_t second = 0; second <= 20; ++second) {
    const std::uint64_t bytes = second < 10 ? 1'000'000 * second : 10'000'000 + 500 * (second - 10);
    rates.add({start + std::chrono::seconds(second),
               {bytes, 2 * bytes, 0, bytes / 2},
               {{"a", {bytes, 125 * second}}}});
    if (second == 0) CHECK_FALSE(rates.flows());
    if (second == 9) CHECK(rates.flows() == longhaul::flows::FlowBytes{8'000'000, 16'000'000, 0, 4'000'000});
  }
  CHECK(rates.flows() == longhaul::flows::FlowBytes{4000, 8000, 0, 2000});
  CHECK(rates.link("a") == RecentRates::Link{4000, 1000});
  CHECK_FALSE(rates.link("b"));
  rates.add({start + 21s, {10'005'500, 20'011'000, 0, 5'002'750}, {{"a", {0, 0}}, {"b", {1, 1}}}});
  CHECK_FALSE(rates.link("a"));  // another session
  CHECK_FALSE(rates.link("b"));
  CHECK(rates.flows());
}
