// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/loss_tests.h"

#include <catch2/catch.hpp>

#include "proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using Level = LossByRate::Level;

namespace {


void add(LossTests& tests, Level level, double loss) {
  for (int i = 0; i < 2000; ++i) {
    const bool lost = static_cast<int>(i * loss) != static_cast<int>((i + 1) * loss);
    tests.losses().add(level, level == Level::low ? 50'000 : 100'000,
                       {.acked_bytes = lost ? 0 : 1500, .lost_bytes = lost ? 1500 : 0, .loss_runs = lost});
  }
}

}  // namespace

TEST_CASE("little loss is harmless and not tested, much loss is tested after some seconds") {
  LossTests tests(1500, kStart);
  add(tests, Level::normal, 0.01);
  CHECK(tests.is_harmless());
  CHECK_FALSE(tests.is_due(kStart + 1h, 100ms));
  add(tests, Level::normal, 0.1);
  CHECK_FALSE(tests.is_harmless());
  CHECK_FALSE(tests.is_due(kStart + 5s, 100ms));
  CHECK(tests.is_due(kStart + 6s, 100ms));
}

TEST_CASE("loss that stays at a lower rate is harmless from then on, and tested less and less often") {
  LossTests tests(1500, kStart);
  add(tests, Level::normal, 0.08);
  add(tests, Level::low, 0.08);
  CHECK_FALSE(tests.finish(kStart + 6s, 100ms));
  CHECK_FALSE(tests.is_policed());
  CHECK(tests.is_harmless());
  CHECK(tests.harmless_loss() == Approx(0.08).margin(0.01));
  CHECK_FALSE(tests.is_due(kStart + 7s, 100ms));
  CHECK(tests.is_due(kStart + 8s, 100ms));
}

TEST_CASE("loss that is gone at a lower rate is the line's answer to too much") {
  LossTests tests(1500, kStart);
  add(tests, Level::normal, 0.3);
  add(tests, Level::low, 0);
  const auto found = tests.finish(kStart + 6s, 100ms);
  REQUIRE(found);
  CHECK(found->random_loss == Approx(0).margin(0.01));
  CHECK(found->lower < 1);
  CHECK(tests.is_policed());
  add(tests, Level::normal, 0.3);
  CHECK_FALSE(tests.is_harmless());
  CHECK(tests.harmless_loss() == Approx(0).margin(0.01));
}

TEST_CASE("for losses the rate falls by half at most, until a test shows again that they depend on it") {
  LossTests tests(1500, kStart);
  tests.on_rate(100'000);
  tests.on_rate(80'000);
  CHECK(tests.least_rate() == 50'000);
  add(tests, Level::normal, 0.3);
  add(tests, Level::low, 0);
  REQUIRE(tests.finish(kStart + 6s, 100ms));
  tests.on_rate(70'000);
  CHECK(tests.least_rate() == 35'000);
}
