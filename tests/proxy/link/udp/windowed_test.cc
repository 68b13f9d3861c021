// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/windowed.h"

#include <catch2/catch.hpp>
#include <deque>
#include <random>

#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("WindowedBest: without a value there is none, and the last one is never dropped") {
  WindowedMinimum<int> least(1s);
  CHECK_FALSE(least.value());
  least.add(kStart, 7);
  least.advance(kStart + 1h);
  CHECK(least.value() == 7);
  least.add(kStart + 1h, 9);
  CHECK(least.value() == 9);
}

TEST_CASE("WindowedBest: it is the best of the window, exact to a part of it") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    constexpr Duration kWindow = 320ms, kPart = kWindow / WindowedMaximum<int>::kSlices;
    WindowedMaximum<int> most(kWindow);
    std::deque<std::pair<TimePoint, int>> all;
    TimePoint now = kStart;
    for (int i = 0; i < 2000; ++i) {
      now += std::chrono::milliseconds(random() % 8);
      all.emplace_back(now, static_cast<int>(random() % 1000));
      while (all.front().first + kWindow + kPart < now) all.pop_front();
      most.add(now, all.back().second);
      // At least the best of those that the window keeps for certain, at most that of all it may keep.
      int least_allowed = all.back().second, most_allowed = 0;
      for (const auto& [at, value] : all) {
        if (at + kWindow >= now) most_allowed = std::max(most_allowed, value);
      }
      REQUIRE(*most.value() <= most_allowed);
      // A value that stood for a part of the window, with nothing better beside it, is not forgotten.
      for (const auto& [at, value] : all) {
        if (at + kWindow < now || at + kPart > now) continue;
        const bool is_first_in_part = std::none_of(all.begin(), all.end(), [&](const auto& other) {
          return other.first < at && other.first + kPart > at;
        });
        if (is_first_in_part) least_allowed = std::max(least_allowed, value);
      }
      REQUIRE(*most.value() >= least_allowed);
    }
  }
}
