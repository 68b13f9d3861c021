// SPDX-License-Identifier: Apache-2.0
#include "codecs/interval_set.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

using namespace longhaul;

TEST_CASE("additions and removals in any order match a plain set") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    IntervalSet set;
    std::set<std::uint64_t> model;
    for (int step = 0; step < 400; ++step) {
      std::uint64_t begin = random() % 120, end = begin + random() % 12;
      if (random() % 20 == 0) std::swap(begin, end);  // an interval that is none changes nothing
      if (random() % 3) {
        set.add({begin, end});
        for (std::uint64_t i = begin; i < end; ++i) model.insert(i);
      } else {
        set.remove({begin, end});
        for (std::uint64_t i = begin; i < end; ++i) model.erase(i);
      }
      INFO("seed " << seed << ", step " << step);
      for (std::uint64_t i = 0; i < 140; ++i) REQUIRE(set.contains(i) == model.contains(i));
      REQUIRE(set.empty() == model.empty());
      // Sorted, and with a hole between any two.
      for (std::size_t i = 0; i < set.intervals().size(); ++i) {
        REQUIRE(set.intervals()[i].begin < set.intervals()[i].end);
        if (i > 0) REQUIRE(set.intervals()[i - 1].end < set.intervals()[i].begin);
      }
    }
  }
}

TEST_CASE("the largest numbers are in range") {
  IntervalSet set;
  set.add({~0ull - 1, ~0ull});
  CHECK(set.contains(~0ull - 1));
  CHECK_FALSE(set.contains(~0ull));
  set.remove({0, ~0ull});
  CHECK(set.empty());
}
