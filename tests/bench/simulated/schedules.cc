// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/simulated/schedules.h"

#include <algorithm>
#include <cstdlib>

#include "tests/bench/simulated/simulation.h"
#include "tests/proxy/link/udp/random_schedule.h"

namespace longhaul::bench {
namespace {

constexpr Duration kSlow = 5s;  // since the last change

void trace_end(const char* name, const UdpEnd& end) {
  const auto view = end.carrier.rate().view();
  std::printf(
      " | %s %s %s%s%s %.0f kbit/s sends %.0f base %.0f ms queue %.0f ms rtt %.0f ms flight %.0f kB lost "
      "%.3f",
      name, end.session.preferred() == link::kNoCarrier ? "none" : "udp", view.phase,
      view.competes ? " competes" : "", view.policed ? " policed" : "", 8e-3 * double(view.line_rate),
      8e-3 * double(end.carrier.rate().bytes_per_second()),
      1e3 * in_seconds(view.base_rtt.value_or(Duration{0})), 1e3 * in_seconds(view.queue),
      1e3 * in_seconds(end.carrier.rtt().smoothed()),
      1e-3 * double(end.carrier.flight().sent().bytes_in_flight()), end.carrier.loss_rate());
}

void trace(UdpPair& pair) {
  const TimePoint start = pair.now();
  pair.network().every(250ms, [&pair, start] {
    std::printf("%7.2f", in_seconds(pair.now() - start));
    trace_end("a", pair.a);
    trace_end("b", pair.b);
    std::printf("\n");
  });
}

}  // namespace

void schedules(std::uint64_t first, std::uint64_t count, bool traced) {
  for (const bool hosts_stall : {false, true}) {
    std::uint64_t failed = 0, slow = 0;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      const ScheduleOutcome outcome =
          Schedule({.seed = seed, .hosts_stall = hosts_stall, .watch = traced ? trace : nullptr}).run();
      failed += !outcome.failure.empty();
      slow += outcome.gone_on_after > kSlow;
      if (!outcome.failure.empty() || outcome.gone_on_after > kSlow)
        std::printf("seed %llu%s: %s, gone on after %.1f s\n", static_cast<unsigned long long>(seed),
                    hosts_stall ? " with stalls" : "",
                    outcome.failure.empty() ? "slow" : outcome.failure.c_str(),
                    in_seconds(outcome.gone_on_after));
      std::fflush(stdout);
    }
    std::printf("schedules%s, seeds %llu to %llu: %llu failed, %llu went on only after %.0f s\n",
                hosts_stall ? " with stalls of hosts" : "", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(first + count - 1), static_cast<unsigned long long>(failed),
                static_cast<unsigned long long>(slow), in_seconds(kSlow));
  }
}

}  // namespace longhaul::bench
