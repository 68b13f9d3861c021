// SPDX-License-Identifier: Apache-2.0
// Results of the two laws on many lines, as tables: `test_proxy "[.figures]"`. Asserts nothing; the goals
// stand beside the figures.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "proxy/link/udp/measured_law.h"
#include "proxy/link/udp/paced_law.h"
#include "tests/proxy/link/udp/bulk_model.h"
#include "tests/simulator/tcp.h"

using namespace longhaul;
using namespace longhaul::link::udp;
using namespace longhaul::simulator;
using namespace std::chrono_literals;

namespace {
constexpr double kOc1 = 51.84e6;

struct Path {
  double bits = kOc1;
  Duration rtt = 100ms;
  double loss = 0;
  double queue_bdp = 1;
  std::uint64_t queue_bytes = 0;  // 0: max(64 KiB, queue_bdp)
  double burst = 0;               // mean length of a burst of losses; 0: each by itself
  double reorder = 0;
  Duration jitter{0};
  std::optional<Policer> policer{};
};

LineConfig line_of(const Path& path) {
  wan::LinkConfig there{
      .rate_bits = static_cast<std::uint64_t>(path.bits), .delay = path.rtt / 2, .jitter = path.jitter};
  there.queue_bytes =
      path.queue_bytes
          ? path.queue_bytes
          : std::max<std::uint64_t>(
                65536, static_cast<std::uint64_t>(path.queue_bdp * path.bits / 8 * seconds(path.rtt)));
  if (path.burst > 0) {
    there.burst_loss =
        wan::BurstLoss{.enter = path.loss / (1 - path.loss) / path.burst, .leave = 1 / path.burst};
  } else {
    there.loss = path.loss;
  }
  there.reorder = path.reorder;
  there.reorder_by = 5ms;
  wan::LinkConfig back = there;
  back.reorder = 0;
  return {{.link = there, .policer = path.policer}, {.link = back}, Duration{0}};
}

enum class Law { paced, measured, warm };
const char* name(Law law) { return law == Law::paced ? "paced" : law == Law::measured ? "measured" : "warm"; }

std::unique_ptr<RateLaw> make_law(Law law, double told_bits, Duration rtt, TimePoint now,
                                  std::uint64_t seed) {
  const auto rate = static_cast<std::uint64_t>(told_bits / 8);
  if (law == Law::paced) return std::make_unique<PacedLaw>(PacedConfig{.rate = rate, .seed = seed}, now);
  MeasuredConfig config{.seed = seed};
  if (law == Law::warm) config.memory = PathMemory{rate, rtt};
  return std::make_unique<MeasuredLaw>(config, now);
}

// SEED=first
std::uint64_t seed_given() {
  const char* text = std::getenv("SEED");
  return text ? static_cast<std::uint64_t>(std::atoll(text)) : 1;
}

struct Outcome {
  double share = 0;  // of line × (1 − loss), after the first seconds, without what was sent twice for nothing
  double rtt_mean = 0;  // ms
  double rtt_p99 = 0;
  double start = 0;     // round trips until 90 % of the line arrives
  double sent = 0;      // bytes sent over useful bytes × (1 - loss)
  double spurious = 0;  // share of packets
};

void trace(Network& network, const BulkFlow& flow, Line& line) {
  const auto* measured = dynamic_cast<const MeasuredLaw*>(&const_cast<BulkFlow&>(flow).sender.law());
  if (const auto* paced = dynamic_cast<const PacedLaw*>(&const_cast<BulkFlow&>(flow).sender.law()))
    measured = paced->guard();
  std::printf("    %8.3f pace %8.3f Mbit/s window %7.0f in flight %7.0f queue %6.2f ms",
              seconds(network.now().time_since_epoch()) - 3600,
              static_cast<double>(const_cast<BulkFlow&>(flow).sender.law().pacing_rate()) * 8e-6,
              static_cast<double>(const_cast<BulkFlow&>(flow).sender.law().window()) / 1500,
              static_cast<double>(flow.sender.sent().bytes_in_flight()) / 1500,
              seconds(line.a_to_b().queue_delay()) * 1e3);
  if (measured)
    std::printf(" share %.2f line %8.3f q %6.2f loss %5.2f%% random %5.2f%% %s%s", measured->share(),
                measured->line_rate() * 8e-6, seconds(measured->watch().queue()) * 1e3,
                measured->losses().total_loss() * 100, measured->losses().random_loss() * 100,
                measured->competing() ? "competing " : "", measured->describe());
  std::printf("\n");
}

Outcome run(const Path& path, Law law, std::uint64_t seed, Duration skip = 3s, Duration time = 20s,
            double told = 0) {
  Network network(seed);
  Line& line = network.add_line(line_of(path));
  if (path.bits > 2e9) {
    line.a_to_b().set_interrupt_interval(50us);
    line.b_to_a().set_interrupt_interval(50us);
  }
  BulkFlow flow(network, line, 1, make_law(law, told > 0 ? told : path.bits, path.rtt, network.now(), seed),
                path.rtt);
  if (const char* small = std::getenv("SMALL"))
    flow.sender.set_small_packets(static_cast<unsigned>(std::atoi(small)));
  const TimePoint start = network.now();
  if (std::getenv("TRACE"))
    for (TimePoint at = start; at < start + skip + time;
         at += std::chrono::milliseconds(std::atoi(std::getenv("TRACE"))))
      network.at(at, [&] { trace(network, flow, line); });
  network.run_for(skip);
  flow.sender.reset_rtt();
  const auto before = flow.sender.sent().counters();
  network.run_for(time);
  const auto after = flow.sender.sent().counters();
  const double spurious =
      static_cast<double>(after.spurious_losses - before.spurious_losses) * kModelPacket * 8 / seconds(time);
  const double bound =
      std::min(path.bits, path.policer ? static_cast<double>(path.policer->rate_bits) : 1e18) *
      (1 - path.loss);
  Outcome outcome;
  const double useful = flow.rate(start + skip, network.now()) - spurious;
  outcome.share = useful / bound;
  outcome.rtt_mean = flow.sender.rtt_ms().mean();
  outcome.rtt_p99 = flow.sender.rtt_ms().percentile(99);
  outcome.sent = static_cast<double>(after.sent_packets - before.sent_packets) * kModelPacket * 8 /
                 seconds(time) * (1 - path.loss) / useful;
  outcome.spurious = static_cast<double>(after.spurious_losses - before.spurious_losses) /
                     static_cast<double>(after.sent_packets - before.sent_packets);
  const Duration window = std::max<Duration>(path.rtt / 4, 10ms);
  outcome.start = -1;
  for (TimePoint at = start; at < network.now(); at += 1ms)
    if (flow.rate(at, at + window) >= 0.9 * bound) {
      outcome.start = seconds(at - start - path.rtt / 2) / std::max(seconds(path.rtt), 1e-3);
      break;
    }
  return outcome;
}

void print(const char* what, const Path& path, Law law, const Outcome& o) {
  std::printf(
      "%-22s %-8s %7.2f Mbit/s %3.0f ms %5.2f%% | %6.2f%% of the bound | RTT %6.1f p99 %6.1f of %6.1f ms | "
      "start %5.1f RTT | sent %.3f again %.4f\n",
      what, name(law), path.bits / 1e6, seconds(path.rtt) * 1e3, path.loss * 100, o.share * 100, o.rtt_mean,
      o.rtt_p99, seconds(path.rtt) * 1250 + 5, o.start, o.sent, o.spurious);
  std::fflush(stdout);
}
}  // namespace

TEST_CASE("bulk alone on the line", "[.figures][bulk]") {
  for (const Law law : {Law::paced, Law::measured})
    for (const Duration rtt : {0ms, 30ms, 100ms, 250ms})
      for (const double loss : {0.0, 0.001, 0.005, 0.01, 0.05, 0.1}) {
        const Path path{.rtt = rtt, .loss = loss};
        print("OC-1", path, law, run(path, law, seed_given()));
      }
}

// LINE="Mbit/s ms loss law seed seconds told" TRACE=ms
TEST_CASE("trace of one line", "[.figures][one]") {
  double megabits = 51.84, loss = 0, told = 0;
  int rtt = 250, law = 1, seed = 1, time = 20;
  if (const char* text = std::getenv("LINE"))
    (void)std::sscanf(text, "%lf %d %lf %d %d %d %lf", &megabits, &rtt, &loss, &law, &seed, &time, &told);
  Path path{.bits = megabits * 1e6, .rtt = std::chrono::milliseconds(rtt), .loss = loss};
  if (const char* burst = std::getenv("BURST")) path.burst = std::atof(burst);
  if (const char* jitter = std::getenv("JITTER")) path.jitter = std::chrono::microseconds(std::atoll(jitter));
  if (const char* queue = std::getenv("QUEUE"))
    path.queue_bytes = static_cast<std::uint64_t>(std::atoll(queue));
  if (const char* policed = std::getenv("POLICED"))
    path.policer = Policer{51'840'000, static_cast<std::uint64_t>(std::atoll(policed))};
  print("", path, static_cast<Law>(law),
        run(path, static_cast<Law>(law), static_cast<std::uint64_t>(seed), 3s, std::chrono::seconds(time),
            told * 1e6));
}

TEST_CASE("bulk on faster lines", "[.figures][fast]") {
  for (const Law law : {Law::paced, Law::measured}) {
    for (const Path& path : {Path{200e6, 50ms, 0.01}, Path{200e6, 50ms, 0.1}, Path{100e6, 200ms, 0.05},
                             Path{100e6, 200ms, 0.2}, Path{50e6, 600ms, 0.02}})
      print("", path, law, run(path, law, seed_given()));
  }
}

TEST_CASE("bulk at 10 Gbit/s", "[.figures][tera]") {
  for (const Law law : {Law::paced, Law::measured}) {
    const Path path{10e9, 250ms, 0.01};
    print("", path, law, run(path, law, seed_given(), 3s, 5s));
  }
}

TEST_CASE("bulk on lines that lose in bursts or reorder", "[.figures][bursts]") {
  for (const Law law : {Law::paced, Law::measured})
    for (const Duration rtt : {30ms, 100ms, 250ms}) {
      for (const double loss : {0.01, 0.05})
        for (const double burst : {3.0, 10.0}) {
          const Path path{.rtt = rtt, .loss = loss, .burst = burst};
          print(burst > 5 ? "bursts of 10" : "bursts of 3", path, law, run(path, law, seed_given()));
        }
      const Path path{.rtt = rtt, .reorder = 0.02};
      print("2 % reordered by 5 ms", path, law, run(path, law, seed_given()));
      const Path jitter{.rtt = rtt, .jitter = 2ms};
      print("jitter 2 ms", jitter, law, run(jitter, law, 1));
    }
}

TEST_CASE("start-up", "[.figures][start]") {
  for (const Law law : {Law::paced, Law::measured, Law::warm})
    for (const double bits : {10e6, kOc1, 200e6, 1e9})
      for (const Duration rtt : {30ms, 100ms, 250ms})
        for (const double loss : {0.0, 0.05, 0.1}) {
          const Path path{.bits = bits, .rtt = rtt, .loss = loss};
          print("start", path, law, run(path, law, 1, 0s, std::max<Duration>(10 * rtt, 2s)));
        }
}

TEST_CASE("a wrong configured rate", "[.figures][wrong]") {
  for (const Law law : {Law::paced, Law::warm})
    for (const double loss : {0.0, 0.01, 0.05})
      for (const double times : {1.05, 1.25, 2.0, 5.0, 0.8}) {
        Path path{.rtt = 100ms, .loss = loss};
        char what[64];
        std::snprintf(what, sizeof what, "told x%.2f", times);
        print(what, path, law, run(path, law, seed_given(), 3s, 20s, kOc1 * times));
        path.queue_bytes = 32400;  // 5 ms
        std::snprintf(what, sizeof what, "told x%.2f 5 ms queue", times);
        print(what, path, law, run(path, law, seed_given(), 3s, 20s, kOc1 * times));
      }
}

TEST_CASE("policers", "[.figures][policer]") {
  for (const Law law : {Law::paced, Law::measured, Law::warm})
    for (const Duration rtt : {30ms, 100ms, 250ms})
      for (const double loss : {0.0, 0.05})
        for (const std::uint64_t burst : {20'000, 100'000}) {
          Path path{.bits = 200e6, .rtt = rtt, .loss = loss, .policer = Policer{51'840'000, burst}};
          print(burst > 50000 ? "policer, burst 100 kB" : "policer, burst 20 kB", path, law,
                run(path, law, seed_given(), 3s, 20s, 100e6));
        }
}

namespace {
void print_pair(const char* what, const Path& path, double a, double b, double rtt) {
  std::printf("%-30s %8.2f Mbit/s %4.0f ms loss %5.2f%%  shares %5.1f%% %5.1f%% sum %5.1f%% RTT mean %.1f\n",
              what, path.bits / 1e6, seconds(path.rtt) * 1e3, path.loss * 100, a * 100, b * 100,
              (a + b) * 100, rtt);
  std::fflush(stdout);
}
}  // namespace

// TWO="law ms loss later" SEED=first TRACE=ms
TEST_CASE("two links on one line", "[.figures][two]") {
  const char* only = std::getenv("TWO");
  const std::uint64_t seed = seed_given();
  for (const Law law : {Law::measured, Law::paced})
    for (const Duration rtt : {30ms, 100ms, 250ms})
      for (const double loss : {0.0, 0.01, 0.05})
        for (const Duration later : {0ms, 5000ms}) {
          int only_law = 0, only_rtt = 0, only_later = 0;
          double only_loss = 0;
          if (only &&
              (std::sscanf(only, "%d %d %lf %d", &only_law, &only_rtt, &only_loss, &only_later) != 4 ||
               static_cast<Law>(only_law) != law || only_rtt * 1ms != rtt || only_loss != loss ||
               only_later * 1ms != later))
            continue;
          const Path path{.rtt = rtt, .loss = loss};
          Network network(seed);
          Line& line = network.add_line(line_of(path));
          BulkFlow first(network, line, 1, make_law(law, kOc1, rtt, network.now(), 2 * seed - 1), rtt);
          network.run_for(later);
          BulkFlow second(network, line, 2, make_law(law, kOc1, rtt, network.now(), 2 * seed), rtt);
          if (std::getenv("TRACE"))
            for (Duration at{0}; at < 60s; at += std::chrono::milliseconds(std::atoi(std::getenv("TRACE"))))
              network.after(at, [&] {
                trace(network, first, line);
                trace(network, second, line);
              });
          network.run_for(30s);
          first.sender.reset_rtt();
          network.run_for(30s);
          const double bound = path.bits * (1 - loss);
          char what[64];
          std::snprintf(what, sizeof what, "%s | two links%s", name(law),
                        later > 0s ? ", one 5 s later" : "");
          print_pair(what, path, first.rate(network.now() - 30s, network.now()) / bound,
                     second.rate(network.now() - 30s, network.now()) / bound, first.sender.rtt_ms().mean());
        }
}

// Links that come 3 s one after the other, the shares of 30 s after half a minute together.
TEST_CASE("several links on one line", "[.figures][many]") {
  for (const Law law : {Law::measured, Law::paced})
    for (const Duration rtt : {30ms, 100ms, 250ms})
      for (const std::size_t count : {3u, 5u}) {
        const Path path{.rtt = rtt};
        Network network(seed_given());
        Line& line = network.add_line(line_of(path));
        std::vector<std::unique_ptr<BulkFlow>> flows;
        for (std::size_t i = 0; i < count; ++i) {
          flows.push_back(std::make_unique<BulkFlow>(
              network, line, static_cast<std::uint16_t>(i + 1),
              make_law(law, kOc1, rtt, network.now(), count * seed_given() + i), rtt));
          network.run_for(3s);
        }
        network.run_for(30s);
        flows[0]->sender.reset_rtt();
        network.run_for(30s);
        std::vector<double> shares;
        for (const auto& flow : flows)
          shares.push_back(flow->rate(network.now() - 30s, network.now()) / path.bits);
        std::printf("%-8s %zu links %4.0f ms  sum %5.1f%% RTT mean %6.1f ms, of an even share:", name(law),
                    count, seconds(rtt) * 1e3, std::accumulate(shares.begin(), shares.end(), 0.0) * 100,
                    flows[0]->sender.rtt_ms().mean());
        for (const double share : shares) std::printf(" %.2f", share * static_cast<double>(count));
        std::printf("\n");
      }
}

TEST_CASE("beside one CUBIC flow", "[.figures][cubic]") {
  for (const Law law : {Law::measured, Law::paced})
    for (const Duration rtt : {30ms, 100ms, 250ms})
      for (const double queue : {0.5, 1.0, 2.0})
        for (const Duration later : {0ms, 5000ms}) {
          int only_law = 0, only_rtt = 0, only_later = 0;
          double only_queue = 0;
          if (const char* text = std::getenv("CUBIC");  // "law ms queue later"
              text &&
              (std::sscanf(text, "%d %d %lf %d", &only_law, &only_rtt, &only_queue, &only_later) != 4 ||
               static_cast<Law>(only_law) != law || only_rtt * 1ms != rtt || only_queue != queue ||
               only_later * 1ms != later))
            continue;
          const Path path{.rtt = rtt, .queue_bdp = queue};
          Network network(seed_given());
          Line& line = network.add_line(line_of(path));
          TcpReceiver tcp_receiver;
          TcpSender tcp({.to = {2, 9}, .start = network.now()}, std::make_unique<CubicLaw>());
          auto& node = network.attach(tcp, line, LineEnd::a, {1, 9});
          network.attach(tcp_receiver, line, LineEnd::b, {2, 9});
          node.wake();
          network.run_for(later);
          BulkFlow flow(network, line, 1, make_law(law, kOc1, rtt, network.now(), seed_given()), rtt);
          if (std::getenv("TRACE"))
            for (Duration at{0}; at < 60s; at += std::chrono::milliseconds(std::atoi(std::getenv("TRACE"))))
              network.after(at, [&] { trace(network, flow, line); });
          network.run_for(20s);
          flow.sender.reset_rtt();
          network.run_for(40s);
          char what[64];
          std::snprintf(what, sizeof what, "%s | CUBIC%s, queue %.1f", name(law), later > 0s ? " first" : "",
                        queue);
          print_pair(what, path, flow.rate(network.now() - 40s, network.now()) / path.bits,
                     tcp_receiver.meter().bits_per_second(network.now() - 40s, network.now()) /
                         (path.bits * 1448 / 1500),
                     flow.sender.rtt_ms().mean());
        }
}
