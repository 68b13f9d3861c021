// SPDX-License-Identifier: Apache-2.0
// The criteria of calibration, and the published figures beside it.
#include "tools/wan/calibrate/goals.h"

#include <catch2/catch.hpp>

#include "tools/wan/calibrate/source.h"

using namespace longhaul::wan;

TEST_CASE("the binomial interval leaves equal probability in both tails") {
  // 10 fair coins: P(0) = 1/1024, P(<=1) = 11/1024.
  CHECK(binomial_interval(10, 0.5, 1 - 2 * 0.0009) == std::pair<std::uint64_t, std::uint64_t>{0, 10});
  CHECK(binomial_interval(10, 0.5, 1 - 2 * 0.0010) == std::pair<std::uint64_t, std::uint64_t>{1, 9});
  CHECK(binomial_interval(10, 0.5, 1 - 2 * 0.0108) == std::pair<std::uint64_t, std::uint64_t>{2, 8});
  CHECK(binomial_interval(10, 0, 0.999) == std::pair<std::uint64_t, std::uint64_t>{0, 0});
  CHECK(binomial_interval(10, 1, 0.999) == std::pair<std::uint64_t, std::uint64_t>{10, 10});
  // Near the normal approximation: 500 +- 3.29 x 21.8.
  const auto [low, high] = binomial_interval(10'000, 0.05, 0.999);
  CHECK(low == Approx(429).margin(3));
  CHECK(high == Approx(572).margin(3));
}

TEST_CASE("a goal can be missed in both directions") {
  CHECK(rate_is_right(1e6, 0.9901e6));
  CHECK(rate_is_right(1e6, 1.0099e6));
  CHECK_FALSE(rate_is_right(1e6, 0.989e6));
  CHECK_FALSE(rate_is_right(1e6, 1.011e6));
  CHECK(delay_is_right(100, 0.05, 100.34));
  CHECK_FALSE(delay_is_right(100, 0.05, 100.36));
  CHECK_FALSE(delay_is_right(100, 0.05, 99.7));
  CHECK(loss_is_right(10'000, 500, 0.05));
  CHECK_FALSE(loss_is_right(10'000, 400, 0.05));
  CHECK_FALSE(loss_is_right(10'000, 1, 0));
}

TEST_CASE("the source's figures are found by kind and setting") {
  CHECK(source_figure("bandwidth_kbit", 51'840) == 49'112);
  CHECK(source_figure("rtt_ms", 0) == 0.268);
  CHECK(source_figure("loss_percent", 0.05) == 0.03);
  CHECK(source_figure("emulator_kbit", 100'000) == 94'330.88);
  CHECK_FALSE(source_figure("bandwidth_kbit", 155'000));
  CHECK_FALSE(source_figure("speed", 0));
}
