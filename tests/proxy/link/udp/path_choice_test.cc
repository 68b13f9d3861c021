// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_choice.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using longhaul::config::PathPolicy;

namespace {

struct Choosing {
  explicit Choosing(PathPolicy of, std::vector<PathFacts> from) : policy(of), paths(std::move(from)) {
    for (std::size_t i = 0; i < paths.size(); ++i) paths[i].order = i;
  }
  PathShares after(Duration time) {
    now += time;
    return choice.choose(policy, sharing, paths, now);
  }
  std::optional<std::size_t> preferred_after(Duration time) { return after(time).preferred; }

  PathPolicy policy;
  Sharing sharing = Sharing::as_policy;
  std::vector<PathFacts> paths;
  TimePoint now{1h};
  PathChoice choice;
};

using PathIndex = std::optional<std::size_t>;

}  // namespace

TEST_CASE("nothing is chosen where no path works") {
  Choosing two(PathPolicy::sum, {{.rtt = 10ms}, {.rtt = 20ms}});
  CHECK_FALSE(two.preferred_after(0s));
  two.paths[1].works = true;
  CHECK(two.preferred_after(0s) == PathIndex(1));
  two.paths[1].works = false;
  CHECK_FALSE(two.preferred_after(0s));
}

TEST_CASE("failover: the first one in order that works, and back when it has worked for a while") {
  Choosing two(PathPolicy::failover, {{.works = true, .rtt = 90ms}, {.works = true, .rtt = 10ms}});
  CHECK(two.preferred_after(0s) == PathIndex(0));
  two.paths[0].works = false;
  CHECK(two.preferred_after(1s) == PathIndex(1));
  two.paths[0].works = true;
  CHECK(two.preferred_after(10s) == PathIndex(1));
  REQUIRE(two.choice.next_change());
  CHECK(*two.choice.next_change() == two.now + PathChoice::kFirstHold);
  CHECK(two.preferred_after(PathChoice::kFirstHold) == PathIndex(0));
  CHECK(two.after(0s).helpers.empty());
}

TEST_CASE("a path that flaps is returned to later and later, and soon again after a steady minute") {
  Choosing two(PathPolicy::failover, {{.works = true}, {.works = true}});
  const auto flap = [&] {
    two.paths[0].works = false;
    two.after(1s);
    two.paths[0].works = true;
    two.after(1ms);
    Duration waited{0};
    while (two.preferred_after(100ms) != PathIndex(0)) waited += 100ms;
    return waited;
  };
  two.after(0s);
  CHECK(flap() < 1s);
  CHECK(flap() >= 1900ms);
  CHECK(flap() >= 3900ms);
  for (int i = 0; i < 5; ++i) flap();
  CHECK(flap() < 17s);
  two.after(2min);
  CHECK(flap() < 1s);
}

TEST_CASE("best: the lowest round-trip time, and no change for little or for a moment") {
  Choosing two(PathPolicy::best, {{.works = true, .rtt = 40ms}, {.works = true, .rtt = 20ms}});
  CHECK(two.preferred_after(0s) == PathIndex(1));
  two.paths[1].rtt = 50ms;  // less than a quarter and 5 ms more
  CHECK(two.preferred_after(10s) == PathIndex(1));
  two.paths[1].rtt = 100ms;
  CHECK(two.preferred_after(10s) == PathIndex(1));
  two.paths[1].rtt = 30ms;  // a short queue
  CHECK(two.preferred_after(500ms) == PathIndex(1));
  two.paths[1].rtt = 100ms;
  CHECK(two.preferred_after(900ms) == PathIndex(1));
  CHECK(two.preferred_after(PathChoice::kFasterFor) == PathIndex(0));
}

TEST_CASE("sum: the others of the lowest cost help, and a dear path does nothing while a cheap one works") {
  Choosing three(
      PathPolicy::sum,
      {{.works = true, .rtt = 40ms}, {.works = true, .cost = 2, .rtt = 10ms}, {.works = true, .rtt = 20ms}});
  const PathShares shares = three.after(0s);
  CHECK(shares.preferred == PathIndex(2));
  CHECK(shares.helpers == std::vector<std::size_t>{0});
  three.paths[0].works = three.paths[2].works = false;
  CHECK(three.preferred_after(1s) == PathIndex(1));
  CHECK(std::string(three.after(0s).reason) == "no other path works");
}

TEST_CASE("a late path is left at once for one that is not, but not where all are late") {
  Choosing two(PathPolicy::best, {{.works = true, .rtt = 10ms}, {.works = true, .rtt = 20ms}});
  CHECK(two.preferred_after(0s) == PathIndex(0));
  two.paths[0].late = true;
  CHECK(two.preferred_after(0s) == PathIndex(1));
  two.paths[0].late = false;
  CHECK(two.preferred_after(0s) == PathIndex(1));  // as for any faster path, the return takes a second
  two.paths[0].late = two.paths[1].late = true;
  CHECK(two.preferred_after(0s) == PathIndex(1));
}

TEST_CASE("streams that ask for another policy have its path, and helpers only if they ask for sum") {
  const auto policy = GENERATE(PathPolicy::sum, PathPolicy::best, PathPolicy::failover);
  Choosing two(policy, {{.works = true, .rtt = 90ms}, {.works = true, .rtt = 10ms}});
  const PathShares shares = two.after(0s);
  CHECK(shares.first == PathIndex(0));
  CHECK(shares.fastest == PathIndex(1));
  CHECK(shares.preferred == (policy == PathPolicy::failover ? shares.first : shares.fastest));
  CHECK(shares.helpers.empty() == (policy != PathPolicy::sum));
  two.sharing = Sharing::asked_for;
  CHECK(two.after(0s).helpers == std::vector<std::size_t>{0});
}

TEST_CASE("a doubtful path stays preferred, and another one gets copies") {
  Choosing three(PathPolicy::best, {{.works = true, .rtt = 10ms},
                                    {.works = true, .cost = 2, .rtt = 20ms},
                                    {.works = true, .cost = 2, .rtt = 15ms}});
  CHECK_FALSE(three.after(0s).second);
  three.paths[0].doubtful = true;
  CHECK(three.after(0s).preferred == PathIndex(0));
  CHECK(three.after(0s).second == PathIndex(2));
  three.paths[2].doubtful = true;
  CHECK(three.after(0s).second == PathIndex(1));
  three.paths[1].late = true;
  CHECK_FALSE(three.after(0s).second);
  // What a path had in flight when it was left is copied to the one that took over.
  three.paths[1].late = false;
  three.paths[0].late = true;
  three.paths[2].doubtful = false;
  CHECK(three.after(0s).preferred == PathIndex(2));
  CHECK(three.after(0s).second == PathIndex(2));
}

TEST_CASE("a doubtful path is stranded while no other works") {
  Choosing two(PathPolicy::sum, {{.works = true, .rtt = 10ms}, {.rtt = 20ms}});
  CHECK_FALSE(two.after(0s).stranded);
  two.paths[0].doubtful = true;
  CHECK(two.after(0s).stranded);
  two.paths[1].works = true;
  CHECK_FALSE(two.after(0s).stranded);
}
