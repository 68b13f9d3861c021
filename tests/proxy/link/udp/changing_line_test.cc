// SPDX-License-Identifier: Apache-2.0
// Random schedules of changes of a line under two sessions over UDP carriers, from a seed each: every byte is
// right, nothing stops for good, memory is bounded. bench_simulated runs thousands, and measures the speed.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "random_schedule.h"
#include "tests/sweep.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

void run_schedule(const ScheduleTerms& terms) {
  INFO("seed " << terms.seed << (terms.hosts_stall ? " with stalls of hosts" : "") << " (SEED=" << terms.seed
               << " test_proxy \"[changing-many]\" repeats it)");
  CHECK(Schedule(terms).run().failure == "");
}

std::uint64_t number_given(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

TEST_CASE("whatever a line becomes, bytes are right and go on soon after the last change") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
  const std::uint64_t kSchedules = test::whole_sweeps() ? 40 : 12;
#else
  constexpr std::uint64_t kSchedules = 300;
#endif
  for (std::uint64_t seed = 1; seed <= kSchedules; ++seed)
    run_schedule({.seed = seed, .hosts_stall = seed % 3 == 0});
}

TEST_CASE("schedules in which the rate fell to some packets a second, and stayed there") {
  for (const std::uint64_t seed : {708u, 1238u, 5566u, 5633u}) run_schedule({.seed = seed});
}

TEST_CASE("schedules in which larger packets, a policer or repairs kept the flow from going on for long") {
  for (const std::uint64_t seed : {3111u, 3188u, 3300u, 3398u, 3758u, 4004u})
    run_schedule({.seed = seed, .goes_on_within = 5s});
}

// SEED=first COUNT=schedules
TEST_CASE("the same with many more schedules", "[.][changing-many]") {
  const std::uint64_t first = number_given("SEED", 1), count = number_given("COUNT", 1);
  for (std::uint64_t seed = first; seed < first + count; ++seed)
    for (const bool hosts_stall : {false, true}) run_schedule({.seed = seed, .hosts_stall = hosts_stall});
}
