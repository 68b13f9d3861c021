// SPDX-License-Identifier: Apache-2.0
#include "codecs/interval_tree.h"

#include <catch2/catch.hpp>
#include <random>

namespace longhaul {

TEST_CASE("an interval tree and an interval set hold the same intervals") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    IntervalSet set;
    IntervalTree tree;
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t begin = random() % 400;
      const Interval added{begin, begin + random() % 8};
      set.add(added);
      tree.add(added);
      if (random() % 16 == 0 && !set.empty()) {
        CHECK(tree.front() == set.intervals().front());
        set.remove({0, set.intervals().front().end});
        tree.pop_front();
      }
      if (random() % 2 == 0) {
        const std::uint64_t from = random() % 400;
        const Interval removed{from, from + random() % 20};
        set.remove(removed);
        tree.remove(removed);
      }
      const std::uint64_t value = random() % 410;
      CHECK(tree.contains(value) == set.contains(value));
    }
    REQUIRE(tree.count() == set.intervals().size());
    for (Interval each : set.intervals()) {
      CHECK(tree.front() == each);
      tree.pop_front();
    }
    CHECK(tree.empty());
  }
}

}  // namespace longhaul
