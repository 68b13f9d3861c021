// SPDX-License-Identifier: Apache-2.0
// A download over two UDP carriers whose hosts stand still at random: no processor for 0.2 to 3 s, again and
// again. A seed repeats a run. stalls_simulation_test.cc runs few, bench_simulated prints figures.
#pragma once
#include <algorithm>

#include "../simulated_flow.h"
#include "random_schedule.h"
#include "simulated_udp_pair.h"

namespace longhaul::link::simulation {

enum class Who : std::uint8_t {
  receiver,
  sender,
  both,         // each at times of its own
  one_machine,  // both at the same moments, and for nearly as long
  line,         // hands over nothing meanwhile, then all at once
  lab,          // one machine that has the line, too
};
inline const char* name_of(Who who) {
  constexpr std::array names{"the receiver", "the sender", "both", "one machine", "the line", "a lab"};
  return names[static_cast<std::size_t>(who)];
}

struct StallTerms {
  std::uint64_t seed = 1;
  double megabits = 25;
  Duration rtt{40ms};
  bool configured = false;
  Who who = Who::both;
  Duration warm_up{2s};  // before the first stall
  Duration time{60s};    // with stalls
};

struct StallOutcome {
  double meanwhile = 0;   // share of what the line could carry in the time in which both hosts ran
  double afterwards = 0;  // of what it could carry in the third second after the last stall
  int silences = 0;       // how often a side took the link for silent
  int failures = 0;       // how often a side gave UDP up
  bool right = true;
  bool sends_over_udp = true;  // at the end
};

inline StallOutcome run_stalls(const StallTerms& terms) {
  UdpPairOptions options{.seed = terms.seed, .line = line_of(terms.megabits, terms.rtt)};
  if (terms.configured) options.rate_bits = options.line.b_to_a.link.rate_bits;
  UdpPair pair(options);
  FlowsOn<UdpPair> flows(pair);
  StallOutcome outcome;
  if (!pair.run_until([&] { return pair.up(); }, 30s)) return {.right = false};
  const Flow& download = flows.start(0, std::uint64_t{1} << 40);
  Dice dice(terms.seed);
  const double line_bytes = terms.megabits * 1e6 / 8 * 1431 / 1500;
  pair.run_for(terms.warm_up);
  const TimePoint began = pair.now();
  const std::uint64_t before = download.client_reads.read;
  Duration ran{0};
  while (pair.now() - began < terms.time) {
    const Duration runs = dice.ms(100, 2000), stands = dice.ms(200, dice.one_in(4) ? 3000 : 1000);
    const simulator::Node::Stall stall{.time = stands,
                                       .buffer_bytes = dice.one_in(2) ? 200'000u : 8'000'000u};
    pair.run_for(runs);
    ran += runs;
    const bool a_first = dice.one_in(2);
    const bool hosts = terms.who == Who::one_machine || terms.who == Who::lab;
    if (terms.who == Who::receiver || hosts || (terms.who == Who::both && a_first)) pair.node_a.stall(stall);
    if (terms.who == Who::sender || hosts || (terms.who == Who::both && !a_first))
      pair.node_b.stall({.time = stands * (hosts ? 19 : 20) / 20, .buffer_bytes = stall.buffer_bytes});
    const auto hold_line = [&](Duration time) {
      pair.line.a_to_b().set_interrupt_interval(time);
      pair.line.b_to_a().set_interrupt_interval(time);
    };
    if (terms.who == Who::line || terms.who == Who::lab) hold_line(stands * 9 / 10);
    pair.run_for(stands);
    hold_line(Duration{0});
  }
  const auto seconds_of = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  outcome.meanwhile =
      static_cast<double>(download.client_reads.read - before) / (line_bytes * seconds_of(ran));
  pair.run_for(2s);
  const std::uint64_t then = download.client_reads.read;
  pair.run_for(1s);
  outcome.afterwards = static_cast<double>(download.client_reads.read - then) / line_bytes;
  outcome.right = flows.all_right() && !pair.a.error && !pair.b.error;
  for (const UdpEnd* end : {&pair.a, &pair.b}) {
    outcome.silences +=
        static_cast<int>(std::ranges::count(end->events, Event::Kind::path_silent, &Event::kind));
    outcome.failures += end->failures;
    outcome.sends_over_udp = outcome.sends_over_udp && end->session.preferred() != kNoCarrier;
  }
  return outcome;
}

}  // namespace longhaul::link::simulation
