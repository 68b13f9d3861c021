// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/reset_allowance.h"

#include <catch2/catch.hpp>

namespace longhaul::http::h2 {
namespace {

TEST_CASE("http/2 resets: so many are allowed at once, and as many more as time has passed") {
  using namespace std::chrono_literals;
  ResetAllowance allowance;
  link::TimePoint now{1h};
  const auto taken = [&] {
    unsigned count = 0;
    while (count < 10'000 && allowance.take(now)) ++count;
    return count;
  };
  CHECK(taken() == ResetAllowance::kMost);
  CHECK(taken() == 0);
  // Those that were too many count as well: one who goes on has to wait longer.
  now += 100ms;
  CHECK(taken() == ResetAllowance::kPerSecond / 10 - 2);
  now += 1h;
  CHECK(taken() == ResetAllowance::kMost);
}

}  // namespace
}  // namespace longhaul::http::h2
