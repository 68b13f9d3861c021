// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/simulated/changing.h"

#include <algorithm>
#include <memory>

#include "tests/bench/simulated/changing_line.h"
#include "tests/bench/simulated/transfer.h"

namespace longhaul::bench {
namespace {

constexpr Duration kWarmUp = 5s, kTime = 60s;

enum class Sender : std::uint8_t { configured, cold, cubic };

// Other traffic in the same direction.
enum class Beside : std::uint8_t {
  nobody,
  cubic,       // from before we begin, to the end
  comes,       // a CUBIC flow of about 20 s at 10, and one at 40 s
  many_short,  // four downloads of 100 kB a second, by CUBIC
};

struct Row {
  const char* name;
  std::string schedule;  // since the measurement begins; what is at 0 was so before
  Beside beside = Beside::nobody;
  double configured_goal = 92, cold_goal = 88;  // per cent of what others leave; beside CUBIC: of the line
};

struct Outcome {
  double share = 0;         // per cent of what the line could carry
  double others_share = 0;  // of the same, what cross traffic had
  double queue_ms = 0;      // median
};

class Cross {
 public:
  Cross(Beside beside, simulator::Network& network, simulator::Line& line)
      : beside_(beside), network_(network), line_(line) {
    if (beside == Beside::cubic) add(0);
  }
  // The measurement begins.
  void begin() {
    if (beside_ == Beside::comes)
      for (const Duration at : {10s, 40s}) network_.after(at, [this] { add(40'000); });
    if (beside_ == Beside::many_short)
      for (Duration at = 0s; at < kTime; at += 250ms) network_.after(at, [this] { add(69); });
  }
  double bytes(TimePoint from, TimePoint to) const {
    double sum = 0;
    for (const auto& flow : flows_)
      sum += flow->receiver.meter().bits_per_second(from, to) * in_seconds(to - from) / 8;
    return sum;
  }

 private:
  void add(std::uint64_t segments) {
    flows_.push_back(
        std::make_unique<Cubic>(network_, line_, segments, static_cast<std::uint16_t>(100 + flows_.size())));
  }

  Beside beside_;
  simulator::Network& network_;
  simulator::Line& line_;
  std::vector<std::unique_ptr<Cubic>> flows_;
};

Outcome run(const Row& row, const Changes& changes, Sender who, std::uint64_t seed) {
  simulator::Network network(seed);
  simulator::Line& line = network.add_line(changes.first);
  Cross cross(row.beside, network, line);
  if (row.beside == Beside::cubic) network.run_for(5s);
  std::unique_ptr<Simulation> pair;
  std::unique_ptr<Cubic> cubic;
  if (who == Sender::cubic) {
    cubic = std::make_unique<Cubic>(network, line);
  } else {
    UdpPairOptions options{.seed = seed, .line = changes.first};
    if (who == Sender::configured) options.rate_bits = changes.highest_bits;
    pair = std::make_unique<Simulation>(options, network, line);
    pair->come_up();
    pair->flows.start(0, kEndless);
  }
  const auto wake = [&] {
    if (pair) pair->pair.wake();
  };
  wake();
  network.run_for(kWarmUp);
  const TimePoint from = network.now();
  const auto bytes = [&] {
    return pair ? static_cast<double>(delivered(*pair))
                : cubic->receiver.meter().bits_per_second(from, network.now()) *
                      in_seconds(network.now() - from) / 8;
  };
  const double before = pair ? bytes() : 0;
  play(changes, network, line);
  cross.begin();
  simulator::Distribution queue;
  // In time at the mean rate: where a line stands still the present one is next to nothing.
  const double byte_ms = 8e3 / changes.mean_bits(kTime);
  network.every(1ms,
                [&, byte_ms] { queue.add(static_cast<double>(line.b_to_a().queued_bytes()) * byte_ms); });
  network.run_for(kTime);
  if (pair) pair->check();
  const double bound =
      changes.mean_bits(kTime) / 8 * in_seconds(kTime) * (pair ? kPayloadShare : 1448.0 / 1500);
  return {.share = 100 * (bytes() - before) / bound,
          .others_share = 100 * cross.bytes(from, network.now()) /
                          (changes.mean_bits(kTime) / 8 * in_seconds(kTime) * 1448 / 1500),
          .queue_ms = queue.percentile(50)};
}

void print(const Row& row, std::uint64_t seeds) {
  std::printf("%-44s", row.name);
  for (const Sender who : {Sender::configured, Sender::cold, Sender::cubic}) {
    std::vector<double> shares, queues, others;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const Outcome outcome = run(row, read_changes(row.schedule, seed), who, seed);
      // Beside one flow all the time: of the line; else of what cross traffic leaves.
      shares.push_back(row.beside == Beside::cubic ? outcome.share
                                                   : 100 * outcome.share / (100 - outcome.others_share));
      queues.push_back(outcome.queue_ms);
      others.push_back(outcome.others_share);
    }
    const double share = median(shares), queue = median(queues);
    std::printf("  %s %5.1f %% (least %5.1f) queue %6.1f ms",
                who == Sender::configured   ? "configured"
                : who == Sender::cold ? "cold"
                                      : "CUBIC",
                share, *std::ranges::min_element(shares), queue);
    if (row.beside != Beside::nobody) std::printf(" others %4.1f %%", median(others));
    if (who == Sender::cubic) continue;
    const double goal = who == Sender::configured ? row.configured_goal : row.cold_goal;
    const bool even = row.beside != Beside::cubic || median(others) >= goal;
    const bool short_queue = row.beside != Beside::nobody || queue <= 50;
    std::printf(" %s", share >= goal && even && short_queue ? "met" : "MISSED");
  }
  std::printf("\n");
  std::fflush(stdout);
}

constexpr const char* kManaged = "0 rate=51.84mbit delay=20ms queue=300ms aqm=";

}  // namespace

void changing_lines(std::uint64_t seeds, const std::string& only) {
  const std::vector<Row> rows{
      {"RTT 20, 120, 20 ms", "0 rate=51.84mbit delay=10ms\n20 delay=60ms\n40 delay=10ms\n"},
      {"RTT 50, 600, 50 ms", "0 rate=51.84mbit delay=25ms\n20 delay=300ms\n40 delay=25ms\n"},
      {"RTT 50, 600, 50 ms, 5 % lost",
       "0 rate=51.84mbit delay=25ms loss=5%\n20 delay=300ms\n40 delay=25ms\n"},
      {"RTT 10, 40, 150, 20 ms, one direction",
       "0 rate=51.84mbit delay=5ms\n15 b-to-a-delay=35ms\n30 b-to-a-delay=145ms\n45 b-to-a-delay=15ms\n"},
      {"rate 52, 10, 52, 20, 52 Mbit/s, RTT 40 ms",
       "0 rate=51.84mbit delay=20ms\n12 rate=10mbit\n24 rate=51.84mbit\n36 rate=20mbit\n48 rate=51.84mbit\n"},
      {"52 Mbit/s 20 ms, 20 Mbit/s 120 ms, back",
       "0 rate=51.84mbit delay=10ms\n20 rate=20mbit delay=60ms\n40 rate=51.84mbit delay=10ms\n"},
      {"loss 0, 3, 0, 10, 1 %, RTT 100 ms",
       "0 rate=51.84mbit delay=50ms\n12 loss=3%\n24 loss=0\n36 loss=10%\n48 loss=1%\n"},
      {"jitter 0 to 10 ms, order kept, RTT 50 ms", "0 rate=51.84mbit delay=25ms jitter=5ms\n"},
      {"jitter by 2 % reordered by 10 ms, RTT 50 ms", "0 rate=51.84mbit delay=25ms reorder=2%,10ms\n"},
      {"LTE", "trace lte"},
      {"5G", "trace 5g"},
      {"Starlink", "trace starlink"},
      {"Wi-Fi", "trace wifi"},
      {"Wi-Fi that keeps two packets in a pause", "trace wifi queue=200ms"},
      {"10 Mbit/s 40 ms, queue 1 s", "0 rate=10mbit delay=20ms queue=1s\n"},
      {"10 Mbit/s 40 ms, queue 4 s", "0 rate=10mbit delay=20ms queue=4s\n"},
      {"10 Mbit/s 40 ms, queue 4 s, beside CUBIC", "0 rate=10mbit delay=20ms queue=4s\n", Beside::cubic, 40,
       40},
      {"policer 20 Mbit/s 64 KiB on 100, RTT 40 ms", "0 rate=100mbit delay=20ms policer=20mbit,64KiB\n"},
      {"CoDel", std::string(kManaged) + "codel\n", Beside::nobody, 95, 95},
      {"FQ-CoDel", std::string(kManaged) + "fq_codel\n", Beside::nobody, 95, 95},
      {"PIE", std::string(kManaged) + "pie\n", Beside::nobody, 95, 95},
      {"RED", std::string(kManaged) + "red\n", Beside::nobody, 95, 95},
      {"CoDel, beside CUBIC", std::string(kManaged) + "codel\n", Beside::cubic, 40, 40},
      {"FQ-CoDel, beside CUBIC", std::string(kManaged) + "fq_codel\n", Beside::cubic, 40, 40},
      {"PIE, beside CUBIC", std::string(kManaged) + "pie\n", Beside::cubic, 40, 40},
      {"RED, beside CUBIC", std::string(kManaged) + "red\n", Beside::cubic, 40, 40},
      {"outages of 0.1, 1, 5 s, RTT 50 ms",
       "0 rate=51.84mbit delay=25ms\n10 cut=on\n10.1 cut=off\n20 cut=on\n21 cut=off\n35 cut=on\n40 "
       "cut=off\n"},
      {"an outage of 20 s, RTT 50 ms", "0 rate=51.84mbit delay=25ms\n10 cut=on\n30 cut=off\n"},
      {"a CUBIC flow comes and goes, RTT 40 ms", "0 rate=51.84mbit delay=20ms\n", Beside::comes},
      {"4 CUBIC downloads of 100 kB a second", "0 rate=51.84mbit delay=20ms\n", Beside::many_short},
  };
  for (const Row& row : rows)
    if (std::string(row.name).find(only) != std::string::npos) print(row, seeds);
}

}  // namespace longhaul::bench
