// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "tests/bench/simulated/changing.h"
#include "tests/bench/simulated/changing_line.h"
#include "tests/bench/simulated/transfer.h"

namespace longhaul::bench {
namespace {

// The longest queue of the first 20 s of a transfer that begins so long after the link is up.
double longest_queue_seconds(double megabits, Duration rtt, Duration wait, std::uint64_t seed) {
  simulator::LineConfig line = line_of(megabits, rtt);
  for (auto* direction : {&line.a_to_b, &line.b_to_a}) direction->link.queue_bytes = 1 << 20;
  Simulation two({.seed = seed, .line = line});
  two.come_up();
  two.pair.run_for(wait);
  two.flows.start(0, kEndless);
  double longest = 0;
  two.pair.network().every(
      10ms, [&] { longest = std::max(longest, in_seconds(two.pair.line.b_to_a().queue_delay())); });
  two.pair.run_for(20s);
  two.check();
  return longest;
}

// Of a download that begins when the link is up, and of one on the same link later.
struct FirstAndLater {
  double first, later;
};
FirstAndLater download_twice(const Run& run, std::uint64_t bytes) {
  Simulation two({.seed = run.seed, .line = run.line});
  two.come_up();
  const auto fetch = [&] {
    const TimePoint start = two.pair.now();
    Flow& flow = two.flows.start(0, bytes);
    if (!two.pair.run_until([&] { return flow.client_reads.read == bytes; }, 3600s))
      Simulation::fail("a download did not end");
    return in_seconds(two.pair.now() - start);
  };
  const double first = fetch();
  two.pair.run_for(5s);
  const double later = fetch();
  two.check();
  return {first, later};
}

}  // namespace

void slow_lines(std::uint64_t seeds) {
  for (const Duration wait : {Duration(0s), Duration(10s)})
    for (const double megabits : {0.064, 0.128, 0.256})
      for (const Duration rtt : {Duration(30ms), Duration(200ms)}) {
        std::vector<double> queues;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed)
          queues.push_back(longest_queue_seconds(megabits, rtt, wait, seed));
        std::printf(
            "%3g kbit/s %3d ms, %2d s after the link is up, cold: queue of at most %.2f s, worst seed %.2f "
            "(goal 1)  %s\n",
            megabits * 1e3, static_cast<int>(rtt / 1ms), static_cast<int>(wait / 1s), median(queues),
            *std::ranges::max_element(queues), median(queues) <= 1 ? "met" : "MISSED");
      }
  for (const Duration rtt : {Duration(20ms), Duration(100ms)}) {
    std::vector<double> times, bare;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Run run{.line = line_of(51.84, rtt), .knows = Knows::nothing, .seed = seed};
      run.line.b_to_a.policer = simulator::Policer{.rate_bits = 20'000'000, .burst_bytes = 65'536};
      times.push_back(download_seconds(run, 8'000'000));
      bare.push_back(cubic_download_seconds(run, 8'000'000));
    }
    std::printf("8 MB behind a policer of 20 Mbit/s, 64 KiB, %d ms, cold: %.2f s, worst %.2f; CUBIC %.2f s\n",
                static_cast<int>(rtt / 1ms), median(times), *std::ranges::max_element(times), median(bare));
  }
  for (const double loss : {0.05, 0.1}) {
    std::vector<double> first, later;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const Run run{.line = line_of(51.84, 250ms, loss), .knows = Knows::nothing, .seed = seed};
      const FirstAndLater took = download_twice(run, 30'000'000);
      first.push_back(took.first);
      later.push_back(took.later);
    }
    const double part = 100 * median(later) / median(first);
    std::printf(
        "30 MB as the link is up, OC-1 250 ms %.0f %%, cold: %.2f s, later %.2f s: %.1f %% (goal 95)  %s\n",
        100 * loss, median(first), median(later), part, part >= 95 ? "met" : "MISSED");
  }
}

}  // namespace longhaul::bench
