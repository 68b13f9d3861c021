// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/simulated/restart.h"

#include <cstdio>
#include <vector>

#include "proxy/link/udp/path_book.h"
#include "tests/bench/simulated/simulation.h"
#include "tests/bench/simulated/transfer.h"

namespace longhaul::bench {
namespace {

using link::udp::PathBook;
using link::udp::PathMemory;

constexpr double kMegabits = 51.84;
constexpr std::uint64_t kBytes = 3'000'000;

struct First {
  double seconds = 0;
  double queue_ms = 0;  // the longest
  double dropped = 0;   // packets
};

// The first download after the start, on carriers that are up and idle.
First first_download(const simulator::LineConfig& line, const std::optional<PathMemory>& path,
                     std::uint64_t seed) {
  Simulation two({.seed = seed, .line = line, .path = path});
  two.come_up();
  two.pair.run_for(2s);
  First found;
  auto& direction = two.pair.line.b_to_a();
  direction.reset_counters();
  const double byte_ms = 8e3 / static_cast<double>(line.b_to_a.link.rate_bits);
  two.pair.network().every(1ms, [&] {
    found.queue_ms = std::max(found.queue_ms, static_cast<double>(direction.queued_bytes()) * byte_ms);
  });
  const TimePoint start = two.pair.now();
  Flow& flow = two.flows.start(0, kBytes);
  TimePoint last = start;
  flow.client_reads.on_read = [&] { last = two.pair.now(); };
  if (!two.pair.run_until([&] { return flow.client_reads.read == kBytes; }, 3600s))
    Simulation::fail("a download did not end");
  two.check();
  found.seconds = in_seconds(last - start);
  found.dropped = static_cast<double>(direction.counters().link.dropped);
  return found;
}

struct Knowledge {
  const char* name;
  std::optional<PathBook::Time> now;  // of the start; none: nothing is remembered
  bool same_daemon = false;
};

}  // namespace

void restarts(std::uint64_t seeds) {
  constexpr PathBook::Time kThen{std::chrono::seconds(1'800'000'000)};
  const PathBook::Path path{"sha256:0", ""};
  const Knowledge all[] = {{"nothing is remembered", {}},
                           {"remembered by this daemon", kThen, true},
                           {"measured an hour before the start", kThen + PathBook::kRecent},
                           {"measured a day before the start", kThen + PathBook::kOldest}};
  for (const Duration rtt : {Duration(40ms), Duration(250ms)})
    for (const double now_megabits : {kMegabits, 2 * kMegabits, kMegabits / 2, kMegabits / 5, kMegabits / 20})
      for (const Knowledge& knowledge : all) {
        PathBook book;
        book.put(path, {static_cast<std::uint64_t>(kMegabits * 1e6 / 8), rtt}, kThen);
        std::optional<PathMemory> memory;
        if (knowledge.now)
          memory = knowledge.same_daemon ? book.find(path) : book.recall(path, *knowledge.now);
        std::vector<double> times, queues, drops;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
          const First found = first_download(line_of(now_megabits, rtt), memory, seed);
          times.push_back(found.seconds);
          queues.push_back(found.queue_ms);
          drops.push_back(found.dropped);
        }
        std::printf(
            "3 MB, %d ms, the line has %.3g Mbit/s, had %.3g, %s: %.2f s (worst %.2f), queue %.0f ms, %.0f "
            "packets dropped\n",
            static_cast<int>(rtt / 1ms), now_megabits, kMegabits, knowledge.name, median(times),
            *std::ranges::max_element(times), median(queues), median(drops));
        std::fflush(stdout);
      }
}

}  // namespace longhaul::bench
