// SPDX-License-Identifier: Apache-2.0
// Prints the figures of the UDP carrier that are measured in virtual time, each with its goal. Arguments
// choose groups by name; --seeds N, --quick, --first SEED, --trace, --only WORDS.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/bench/simulated/changing.h"
#include "tests/bench/simulated/paths.h"
#include "tests/bench/simulated/restart.h"
#include "tests/bench/simulated/schedules.h"
#include "tests/bench/simulated/stalls.h"
#include "tests/bench/simulated/transfer.h"

namespace longhaul::bench {
namespace {

using link::simulation::line_of;

struct Options {
  std::uint64_t seeds = 5;
  std::uint64_t first = 1;  // seed of the schedules
  bool quick = false;
  bool trace = false;  // of the schedules
  std::string only;    // of the changing lines, those whose name contains it
  std::vector<std::string> groups;
};
Options options;

const char* name_of(Knows knows) {
  return knows == Knows::rate ? "configured" : knows == Knows::path ? "known" : "cold";
}

void verdict(double value, double goal, bool at_least = true) {
  std::printf("  %s\n", goal == 0 ? "" : (at_least ? value >= goal : value <= goal) ? "met" : "MISSED");
  std::fflush(stdout);
}

// Share of rate x payload share x (1 - loss) in percent, median over the seeds.
double bulk_row(const std::string& what, Run run, double loss, double goal_percent, bool cubic = false) {
  const double bound = static_cast<double>(run.line.b_to_a.link.rate_bits) * kPayloadShare * (1 - loss);
  std::vector<double> shares, bare;
  BulkResult last;
  for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
    run.seed = seed;
    last = bulk(run);
    shares.push_back(100 * last.goodput_bits / bound);
    if (cubic) bare.push_back(cubic_alone(run) / 1e6);
  }
  const double least = *std::min_element(shares.begin(), shares.end());
  std::printf(
      "%-44s %s %7.2f Mbit/s  %5.1f %% (least %5.1f)  goal %2.0f  sent/byte %.3f  lost %.3f  rtt %.1f ms  "
      "queue %.1f "
      "p99 %.1f ms",
      what.c_str(), name_of(run.knows), median(shares) / 100 * bound / 1e6, median(shares), least,
      goal_percent, last.sent_per_byte, last.lost_share, last.rtt_ms, last.queue_ms_median,
      last.queue_ms_p99);
  if (cubic) std::printf("  CUBIC %.2f Mbit/s", median(bare));
  verdict(median(shares), goal_percent);
  return median(shares);
}

std::string text(const char* format, auto... values) {
  char line[128];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

void extreme_lines() {
  for (Knows knows : {Knows::rate, Knows::path, Knows::nothing}) {
    bulk_row("GEO 50 Mbit/s 600 ms 2 %", {.line = line_of(50, 600ms, 0.02), .knows = knows, .warm_up = 10s},
             0.02, 90, true);
    bulk_row("100 Mbit/s 200 ms 20 %", {.line = line_of(100, 200ms, 0.2), .knows = knows, .warm_up = 5s}, 0.2,
             85, true);
  }
}

void fast_line() {
  for (Knows knows : {Knows::rate, Knows::nothing}) {
    Run run{.line = line_of(10'000, 250ms, 0.01), .knows = knows, .warm_up = 4s, .time = 5s, .streams = 64};
    run.line.interrupt_interval = 20us;
    const std::uint64_t seeds = std::exchange(options.seeds, 1);
    bulk_row("10 Gbit/s 250 ms 1 %, 64 flows", run, 0.01, 95);
    options.seeds = seeds;
  }
}

void oc1() {
  for (Knows knows : {Knows::rate, Knows::nothing})
    for (Duration rtt : {Duration(1ms), Duration(30ms), Duration(100ms), Duration(250ms)})
      for (double loss : {0.0, 0.001, 0.005, 0.01, 0.05, 0.1})
        bulk_row(text("OC-1 %3d ms %4.1f %%", static_cast<int>(rtt / 1ms), loss * 100),
                 {.line = line_of(51.84, rtt, loss), .knows = knows}, loss,
                 loss <= 0.01   ? 97
                 : loss <= 0.05 ? 95
                                : 93,
                 true);
}

void lossy_lines() {
  struct Line {
    double megabits;
    Duration rtt;
    double loss, goal;
  };
  for (Knows knows : {Knows::rate, Knows::nothing})
    for (const Line& line : {Line{200, 50ms, 0.01, 96}, Line{200, 50ms, 0.1, 92}, Line{100, 200ms, 0.05, 92},
                             Line{100, 200ms, 0.2, 85}})
      bulk_row(
          text("%.0f Mbit/s %d ms %.0f %%", line.megabits, static_cast<int>(line.rtt / 1ms), line.loss * 100),
          {.line = line_of(line.megabits, line.rtt, line.loss), .knows = knows, .warm_up = 4s}, line.loss,
          line.goal, true);
}

// Mean loss and mean length of a burst give the chain's two probabilities.
wan::BurstLoss bursts(double loss, double length) {
  return {.enter = loss / (1 - loss) / length, .leave = 1 / length};
}

// Within three points of what is reached where each packet is lost by itself.
void bursts_and_disorder() {
  constexpr double kPoints = 3;
  for (Knows knows : {Knows::rate, Knows::nothing})
    for (Duration rtt : {Duration(100ms), Duration(250ms)})
      for (double loss : {0.01, 0.05}) {
        const auto base = line_of(51.84, rtt);
        const auto row = [&](const char* kind, double goal, auto change) {
          simulator::LineConfig line = base;
          change(line.a_to_b.link);
          change(line.b_to_a.link);
          return bulk_row(text("OC-1 %d ms %.0f %% %s", static_cast<int>(rtt / 1ms), loss * 100, kind),
                          {.line = line, .knows = knows}, loss, goal);
        };
        const double goal = row("random", 0, [&](auto& link) { link.loss = loss; }) - kPoints;
        row("in bursts of 3", goal, [&](auto& link) { link.burst_loss = bursts(loss, 3); });
        row("in bursts of 10", goal, [&](auto& link) { link.burst_loss = bursts(loss, 10); });
        row("and 2 % reordered by 10 ms", goal, [&](auto& link) {
          link.loss = loss;
          link.reorder = 0.02;
          link.reorder_by = 10ms;
        });
      }
}

void downloads() {
  constexpr std::uint64_t kBytes = 30'000'000;
  constexpr double kGoals[3][4] = {{45.5, 45, 42.5, 39.5}, {43.5, 42.5, 40, 37}, {40, 39, 37, 34}};
  const double losses[] = {0, 0.01, 0.05, 0.1};
  for (Knows knows : {Knows::rate, Knows::path, Knows::nothing})
    for (int i = 0; i < 4; ++i) {
      std::vector<double> rates;
      for (std::uint64_t seed = 1; seed <= options.seeds; ++seed)
        rates.push_back(
            kBytes * 8 / 1e6 /
            download_seconds({.line = line_of(51.84, 250ms, losses[i]), .knows = knows, .seed = seed},
                             kBytes));
      std::printf("30 MB, OC-1 250 ms %2.0f %% %s  %5.2f Mbit/s (least %5.2f)  goal %4.1f", losses[i] * 100,
                  name_of(knows), median(rates), *std::min_element(rates.begin(), rates.end()),
                  kGoals[static_cast<int>(knows)][i]);
      verdict(median(rates), kGoals[static_cast<int>(knows)][i]);
    }
}

void message_delays() {
  struct Case {
    const char* name;
    config::Fec fec;
  };
  for (bool beside_bulk : {true, false})
    for (const Case& each : {Case{"off", {.mode = config::Fec::Mode::off}}, Case{"adaptive", {}}}) {
      const MessageResult result =
          messages({.line = line_of(51.84, 100ms, 0.05), .fec = each.fec, .time = options.quick ? 30s : 300s},
                   beside_bulk);
      std::printf(
          "200 B every 20 ms, 5 %%, RTT 100 ms, %s, FEC %-8s  median %.1f  p99 %.1f (goal 75)  p99.9 %.1f "
          "(goal "
          "150) ms, %.1f Mbit/s",
          beside_bulk ? "beside bulk" : "alone", each.name, result.delay_ms.percentile(50),
          result.delay_ms.percentile(99), result.delay_ms.percentile(99.9), result.bulk_bits / 1e6);
      verdict(result.delay_ms.percentile(99), each.fec.mode == config::Fec::Mode::off ? 0 : 75, false);
    }
}

// What the fast carrier must not be worse than: CUBIC by itself, which has no handshake here as the carrier
// has none.
void short_downloads() {
  for (const double loss : {0.0, 0.01})
    for (const double megabits : {1.544, 10.0, 51.84, 200.0})
      for (const Duration rtt : {Duration(1ms), Duration(30ms), Duration(100ms), Duration(250ms)})
        for (const std::uint64_t bytes : {5'000u, 50'000u, 250'000u, 1'000'000u, 5'000'000u}) {
          if (static_cast<double>(bytes) * 8 / (megabits * 1e6) > 10) continue;
          std::vector<double> ratios, times;
          for (std::uint64_t seed = 1; seed <= (loss > 0 ? options.seeds : 1); ++seed) {
            const Run run{.line = line_of(megabits, rtt, loss), .knows = Knows::nothing, .seed = seed};
            times.push_back(download_seconds(run, bytes));
            ratios.push_back(cubic_download_seconds(run, bytes) / times.back());
          }
          std::printf("%u bytes, %g Mbit/s %d ms %g %%, cold: %.1f ms, %.1f %% of CUBIC's speed",
                      static_cast<unsigned>(bytes), megabits, static_cast<int>(rtt / 1ms), 100 * loss,
                      median(times) * 1e3, 100 * median(ratios));
          verdict(100 * median(ratios), 97, true);
        }
}

// Against a line that takes each block at once: the round trip and what the bytes take at its rate.
void lock_step() {
  for (const double megabits : {1.544, 51.84})
    for (const Duration rtt : {Duration(1ms), Duration(30ms), Duration(100ms)})
      for (const std::uint64_t block : {4'000u, 16'000u, 60'000u})
        for (Knows knows : {Knows::rate, Knows::nothing}) {
          const unsigned count = options.quick ? 40 : 150;
          const double took =
              blocks_seconds({.line = line_of(megabits, rtt), .knows = knows}, block, count) / count;
          const double least = std::chrono::duration<double>(rtt).count() +
                               static_cast<double>(block) * 1500 / 1435 * 8 / (megabits * 1e6);
          std::printf(
              "%u blocks of %u bytes in lock step, %g Mbit/s %d ms, %s: %.2f ms each, %.1f %% of the line's",
              count, static_cast<unsigned>(block), megabits, static_cast<int>(rtt / 1ms), name_of(knows),
              took * 1e3, 100 * least / took);
          verdict(100 * least / took, 90, true);
        }
}

// The same where packets are lost: the last ones of a block have none behind them that tell.
void lock_step_loss() {
  for (const Duration rtt : {Duration(1ms), Duration(30ms)})
    for (const double loss : {0.01, 0.05, 0.1}) {
      const unsigned block = 60'000, count = options.quick ? 100 : 1000;
      std::vector<double> each;
      for (std::uint64_t seed = 1; seed <= options.seeds; ++seed)
        each.push_back(
            blocks_seconds({.line = line_of(51.84, rtt, loss), .knows = Knows::nothing, .seed = seed}, block,
                           count) /
            count);
      const double least = std::chrono::duration<double>(rtt).count() +
                           static_cast<double>(block) * 1500 / 1435 / (1 - loss) * 8 / 51.84e6;
      std::printf(
          "%u blocks of %u bytes in lock step, 51.84 Mbit/s %d ms %g %%: %.2f ms each, %.2f at worst; %.1f "
          "%% "
          "of the line's\n",
          count, block, static_cast<int>(rtt / 1ms), 100 * loss, median(each) * 1e3,
          1e3 * *std::ranges::max_element(each), 100 * least / median(each));
    }
}

// Wireless lines, and hosts that wake up late.
void jitter() {
  for (const double megabits : {1.544, 10.0, 51.84})
    for (const Duration rtt : {Duration(30ms), Duration(100ms)})
      for (const Duration most :
           {Duration(1ms), Duration(5ms), Duration(10ms)}) {  // more than the least delay
        Run run{.line = line_of(megabits, rtt), .knows = Knows::nothing};
        run.line.a_to_b.link.jitter = run.line.b_to_a.link.jitter = most / 2;
        run.line.a_to_b.link.delay += most / 2;
        run.line.b_to_a.link.delay += most / 2;
        bulk_row(text("%g Mbit/s %d ms, jitter 0 to %d ms", megabits, static_cast<int>(rtt / 1ms),
                      static_cast<int>(most / 1ms)),
                 run, 0, 95);
      }
}

// Wireless lines again, and hosts on the way that do something else: all that comes meanwhile comes late.
void standstill() {
  for (const Knows knows : {Knows::rate, Knows::nothing})
    for (const Duration rtt : {Duration(10ms), Duration(40ms), Duration(100ms)})
      for (const Duration stands : {Duration(30ms), Duration(45ms), Duration(80ms), Duration(150ms)}) {
        Run run{.line = line_of(51.84, rtt), .knows = knows, .stands = stands};
        run.line.a_to_b.link.queue_bytes = run.line.b_to_a.link.queue_bytes = 2'000'000;
        const double moves = std::chrono::duration<double>(run.moves) / (run.moves + run.stands);
        bulk_row(text("OC-1 %d ms, stands still for %d ms of %d", static_cast<int>(rtt / 1ms),
                      static_cast<int>(stands / 1ms), static_cast<int>((run.moves + stands) / 1ms)),
                 run, 1 - moves, 95, true);
      }
}

void sharing() {
  const auto off = [](const ShareResult& pairs) {
    return 100 * std::abs(pairs.first_bits - pairs.second_bits) / (pairs.first_bits + pairs.second_bits);
  };
  const auto least = [](const ShareResult& pairs) {
    return 100 * std::min(pairs.first_bits, pairs.second_bits) / (pairs.first_bits + pairs.second_bits);
  };
  for (Knows knows : {Knows::rate, Knows::nothing})
    for (Duration rtt : {Duration(30ms), Duration(100ms), Duration(250ms)}) {
      std::vector<double> two, cubic;
      for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
        const auto line = line_of(51.84, rtt);
        two.push_back(
            off(two_pairs({.line = line, .knows = knows, .seed = seed, .warm_up = 20s, .time = 30s})));
        cubic.push_back(
            least(beside_cubic({.line = line, .knows = knows, .seed = seed, .warm_up = 15s, .time = 60s})));
      }
      const int ms = static_cast<int>(rtt / 1ms);
      const auto even = std::ranges::count_if(two, [](double each) { return each <= 10; });
      std::printf("two links, OC-1 %d ms, %s: %.1f %% from half (goal 10), worst seed %.1f; %d of %d seeds",
                  ms, name_of(knows), median(two), *std::ranges::max_element(two), static_cast<int>(even),
                  static_cast<int>(two.size()));
      verdict(median(two), 10, false);
      std::printf("beside CUBIC, OC-1 %d ms, %s: the smaller share %.1f %%, worst seed %.1f (goal 30)", ms,
                  name_of(knows), median(cubic), *std::ranges::min_element(cubic));
      verdict(median(cubic), 30);
    }
}

// Told more than the line is, and a policer that drops without queueing.
void wrong_rates() {
  for (double share : {0.8, 1.0, 1.2, 2.0, 10.0}) {
    bulk_row(text("OC-1 100 ms, configured at %.0f %% of the rate", share * 100),
             {.line = line_of(51.84, 100ms), .configured_bits = static_cast<std::uint64_t>(51.84e6 * share)}, 0, 0);
    bulk_row(text("OC-1 100 ms 2 %%, configured at %.0f %% of the rate", share * 100),
             {.line = line_of(51.84, 100ms, 0.02), .configured_bits = static_cast<std::uint64_t>(51.84e6 * share)},
             0.02, 0);
  }
  for (Knows knows : {Knows::rate, Knows::nothing}) {
    // 20 Mbit/s with a bucket of 5 ms on a line of 51.84.
    Run run{.line = line_of(51.84, 100ms), .knows = knows};
    run.line.b_to_a.policer = simulator::Policer{.rate_bits = 20'000'000, .burst_bytes = 12'500};
    const BulkResult result = bulk(run);
    std::printf("policer 20 Mbit/s on OC-1 100 ms, %s: %.1f Mbit/s, lost %.3f, sent/byte %.2f",
                name_of(knows), result.goodput_bits / 1e6, result.lost_share, result.sent_per_byte);
    verdict(result.goodput_bits / 20e6 / kPayloadShare, 0);
    run.line = line_of(51.84, 100ms, 0, 0.05);  // a queue of 5 ms
    const BulkResult shallow = bulk(run);
    std::printf("OC-1 100 ms, queue 5 ms, %s: %.1f Mbit/s, lost %.3f, sent/byte %.2f", name_of(knows),
                shallow.goodput_bits / 1e6, shallow.lost_share, shallow.sent_per_byte);
    verdict(shallow.goodput_bits, 0);
  }
}

struct Group {
  const char* name;
  void (*run)();
};
constexpr Group kGroups[] = {
    {"extreme", extreme_lines},
    {"fast", fast_line},
    {"oc1", oc1},
    {"lossy", lossy_lines},
    {"bursts", bursts_and_disorder},
    {"download", downloads},
    {"messages", message_delays},
    {"lock-step", lock_step},
    {"lock-step-loss", lock_step_loss},
    {"short", short_downloads},
    {"jitter", jitter},
    {"standstill", standstill},
    {"sharing", sharing},
    {"wrong", wrong_rates},
    {"changing", [] { changing_lines(options.seeds, options.only); }},
    {"slow", [] { slow_lines(options.seeds); }},
    {"restart", [] { restarts(options.seeds); }},
    {"paths", [] { two_paths(options.seeds); }},
    {"failing", failing_path},
    {"doubtful", [] { doubtful_paths(options.seeds); }},
    {"stalls", [] { stalling_hosts(options.seeds); }},
    {"schedules", [] { schedules(options.first, options.seeds, options.trace); }},
};

}  // namespace
}  // namespace longhaul::bench

int main(int count, char** arguments) {
  using namespace longhaul::bench;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--quick") {
      options.quick = true;
      options.seeds = 1;
    } else if (argument == "--seeds" && i + 1 < count) {
      options.seeds = std::strtoull(arguments[++i], nullptr, 10);
    } else if (argument == "--trace") {
      options.trace = true;
    } else if (argument == "--only" && i + 1 < count) {
      options.only = arguments[++i];
    } else if (argument == "--first" && i + 1 < count) {
      options.first = std::strtoull(arguments[++i], nullptr, 10);
    } else if (std::any_of(std::begin(kGroups), std::end(kGroups),
                           [&](const Group& group) { return argument == group.name; })) {
      options.groups.push_back(argument);
    } else {
      std::fprintf(
          stderr,
          "usage: %s [--quick] [--seeds N] [--first SEED] [--trace] [--only WORDS] [GROUP]...\ngroups:",
          arguments[0]);
      for (const Group& group : kGroups) std::fprintf(stderr, " %s", group.name);
      std::fprintf(stderr, "\n");
      return 2;
    }
  }
  if (options.seeds == 0) options.seeds = 1;
  for (const Group& group : kGroups) {
    if (!options.groups.empty() &&
        std::find(options.groups.begin(), options.groups.end(), group.name) == options.groups.end())
      continue;
    std::printf("-- %s\n", group.name);
    group.run();
  }
}
