// SPDX-License-Identifier: Apache-2.0
// What the far half notes of one open: pushes, fetches, READs that were swallowed.
#include <catch2/catch.hpp>
#include <string>

#include "proxy/modules/ahead/counted_read_ahead.h"
#include "proxy/modules/ahead/fetches.h"
#include "proxy/modules/ahead/pushes.h"
#include "proxy/modules/ahead/swallowed.h"

namespace longhaul::ahead {
namespace {

IntervalSet set_of(Interval range) {
  IntervalSet set;
  set.add(range);
  return set;
}

}  // namespace

TEST_CASE("a push counts as on its way until the near half has seen it, under its own stamp only") {
  Pushes pushes;
  pushes.add({0, 10}, {}, std::nullopt);
  pushes.add({10, 20}, {.near = 1}, std::nullopt);
  pushes.add({20, 30}, {}, 30);
  IntervalSet missing = set_of({0, 100});
  pushes.remove_from(missing, {});
  CHECK((missing.intervals() == std::vector<Interval>{{10, 20}}));  // behind the end of the file nothing is
  pushes.seen(1);
  missing = set_of({0, 30});
  pushes.remove_from(missing, {});
  CHECK((missing.intervals() == std::vector<Interval>{{0, 20}}));
  CHECK(pushes.told() == 3);
  pushes.keep_at_most(1);
  CHECK(pushes.size() == 1);
  pushes.seen(3);
  CHECK(pushes.size() == 0);
}

TEST_CASE("a fetch is taken once, and not after it was given up") {
  Fetches fetches;
  fetches.begin(7, {0, 10});
  fetches.begin(8, {10, 20});
  IntervalSet missing = set_of({5, 25});
  fetches.remove_from(missing);
  CHECK((missing.intervals() == std::vector<Interval>{{20, 25}}));
  CHECK((fetches.take(7) == Interval{0, 10}));
  CHECK_FALSE(fetches.take(7));
  fetches.give_up();
  CHECK_FALSE(fetches.take(8));
}

TEST_CASE("a swallowed READ waits until all that it lacks was pushed, or is sent after all") {
  std::size_t sum = 0;
  {
    Swallowed<std::string> swallowed(sum);
    swallowed.add("first", set_of({0, 20}));
    swallowed.add("second", set_of({10, 30}));
    swallowed.add("third", set_of({50, 60}));
    swallowed.pushed({0, 10}, std::nullopt);
    CHECK(sum == 3);
    swallowed.pushed({10, 15}, std::nullopt);
    swallowed.pushed({15, 20}, std::nullopt);
    CHECK(sum == 2);
    swallowed.pushed({40, 40}, 40);  // the file ends there
    CHECK(sum == 1);
    CHECK(swallowed.take_if([](const IntervalSet& missing) { return missing.empty(); }).empty());
    CHECK(swallowed.take_all() == std::vector<std::string>{"second"});
    CHECK(sum == 0);
    swallowed.add("fourth", set_of({0, 1}));
    CHECK(sum == 1);
  }
  CHECK(sum == 0);
}

TEST_CASE("unread bytes of all opens are summed, and those of an open that has ended are not") {
  std::uint64_t sum = 0;
  const ReadAheadLimits limits;
  CountedReadAhead first(sum);
  {
    CountedReadAhead second(sum);
    for (CountedReadAhead* each : {&first, &second}) {
      each->opened(1 << 20, limits);
      REQUIRE(each->next(limits));
    }
    CHECK(sum == first.ahead_bytes() + second.ahead_bytes());
    CHECK(second.ahead_bytes() != 0);
  }
  CHECK(sum == first.ahead_bytes());
  first.forget_fetched();
  CHECK(sum == 0);
}

}  // namespace longhaul::ahead
