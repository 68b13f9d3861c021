// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/replay_window.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "tests/proxy/link/numbers.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;

TEST_CASE("each number is accepted once, and none below the window") {
  constexpr std::uint64_t kSize = ReplayWindow::kNumbers;
  ReplayWindow window;
  CHECK(window.end() == 0_packet);
  CHECK(window.take(5_packet));
  CHECK_FALSE(window.take(5_packet));
  CHECK(window.take(0_packet));
  CHECK(window.end() == 6_packet);
  // The oldest that is still told apart, and the one before it.
  CHECK(window.take(5_packet + kSize));
  CHECK(window.take(6_packet));
  CHECK_FALSE(window.take(6_packet));
  CHECK_FALSE(window.take(5_packet));
  CHECK_FALSE(window.take(4_packet));
  // A leap far beyond forgets nothing that must be known, and knows nothing that never came.
  CHECK(window.take(PacketNumber(100 * kSize)));
  CHECK_FALSE(window.take(PacketNumber(100 * kSize) - kSize));
  for (std::uint64_t back = 1; back < kSize; ++back) REQUIRE(window.take(PacketNumber(100 * kSize) - back));
  for (std::uint64_t back = 0; back < kSize + 100; ++back)
    REQUIRE_FALSE(window.take(PacketNumber(100 * kSize) - back));
  CHECK(window.take(PacketNumber((std::uint64_t{1} << 62) - 1)));
}

TEST_CASE("the replay window matches a set of all numbers") {
  const unsigned seed = GENERATE(1u, 2u, 3u);
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  ReplayWindow window;
  std::set<std::uint64_t> all;
  std::uint64_t highest = 0;
  for (int i = 0; i < 60'000; ++i) {
    std::uint64_t number;
    switch (random() % 16) {
      case 0:  // forward by any distance up to twice the window
        number = highest + (random() % (2 * ReplayWindow::kNumbers) >> random() % 16);
        break;
      case 1:  // backward, around the window's end
        number = highest - std::min(highest, ReplayWindow::kNumbers - 70 + random() % 140);
        break;
      case 2:  // a word's edges
        number = (highest & ~std::uint64_t{63}) + random() % 3 - (highest >= 64 ? 1 : 0);
        break;
      case 3:  // backward, anywhere
        number = highest - std::min(highest, random() % (2 * ReplayWindow::kNumbers));
        break;
      default:
        number = highest + random() % 4 - std::min<std::uint64_t>(highest, random() % 3);
    }
    bool inside = all.empty() || number > highest || highest - number < ReplayWindow::kNumbers;
    bool expected = inside && all.insert(number).second;
    highest = std::max(highest, number);
    INFO("number " << number << " highest " << highest);
    REQUIRE(window.take(PacketNumber(number)) == expected);
  }
}
