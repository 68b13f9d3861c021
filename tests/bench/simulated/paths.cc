// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/simulated/paths.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "tests/bench/simulated/transfer.h"
#include "tests/proxy/link/simulated_flow.h"
#include "tests/proxy/link/udp/simulated_paths.h"

namespace longhaul::bench {
namespace {

using namespace link::simulation;
using link::OpenRequest;

struct TwoLines {
  explicit TwoLines(const PathsOptions& options) : pair(options), flows(pair) {
    if (!pair.run_until([&] { return pair.up(); }, 30s)) fail("the paths did not come up");
  }
  void check() const {
    if (!flows.all_right()) fail("WRONG BYTES");
    if (pair.a.error || pair.b.error) fail("the peer broke the protocol");
  }
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
  }

  PathsPair pair;
  FlowsOn<PathsPair> flows;
};

struct Shape {
  double megabits;
  Duration rtt;
  double loss = 0;

  double bound_bits() const { return megabits * 1e6 * kPayloadShare * (1 - loss); }
};

PathOptions path_of(const Shape& shape, Knows knows) {
  return {.line = line_of(shape.megabits, shape.rtt, shape.loss),
          .rate_bits = knows == Knows::rate ? static_cast<std::uint64_t>(shape.megabits * 1e6) : 0};
}

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// Messages of 200 bytes every 20 ms from b to a, and how late each one is.
class Messages {
 public:
  explicit Messages(TwoLines& two, OpenRequest request = FlowsOn<PathsPair>::simple_request(),
                    Duration interval = 20ms)
      : two_(two), flow_(two.flows.start_open(std::move(request))) {
    flow_.client_reads.on_read = [this] { take(); };
    two_.pair.network().every(interval, [this] { send(); });
  }
  // Those that were written from now on count.
  void begin() { from_ = two_.pair.now(); }
  // The last ones need not have come.
  simulator::Distribution delays_ms;

 private:
  static constexpr std::uint64_t kBytes = 200;
  void send() {
    link::Stream* stream = two_.pair.b.session.find(flow_.id);
    if (!stream || !stream->begun()) return;
    flow_.server_writes.total += kBytes;
    written_.push_back(two_.pair.now());
    flow_.server_writes.pump(*stream);
    two_.pair.wake();
  }
  void take() {
    for (; read_ + kBytes <= flow_.client_reads.read; read_ += kBytes) {
      if (from_ && written_.front() >= *from_)
        delays_ms.add(seconds(two_.pair.now() - written_.front()) * 1e3);
      written_.pop_front();
    }
  }

  TwoLines& two_;
  Flow& flow_;
  std::deque<TimePoint> written_;
  std::uint64_t read_ = 0;
  std::optional<TimePoint> from_;
};

struct Sum {
  double share, p99_ms, p50_ms;
};

Sum measure_sum(const Shape& first, const Shape& second, Knows knows, std::uint64_t seed) {
  TwoLines two({.seed = seed, .paths = {path_of(first, knows), path_of(second, knows)}});
  Flow& bulk = two.flows.start(0, std::uint64_t{1} << 50);
  Messages messages(two);
  two.pair.run_for(5s);
  messages.begin();
  const std::uint64_t before = bulk.client_reads.read;
  constexpr Duration kTime = 30s;
  two.pair.run_for(kTime);
  two.check();
  const double bits = static_cast<double>(bulk.client_reads.read - before) * 8 / seconds(kTime);
  return {.share = 100 * bits / (first.bound_bits() + second.bound_bits()),
          .p99_ms = messages.delays_ms.percentile(99),
          .p50_ms = messages.delays_ms.percentile(50)};
}

// In percent of the other line's bound: the least of all seconds from the cut on, looked at every 100 ms.
double least_second(const Shape& first, const Shape& second, std::size_t cut, Knows knows,
                    std::uint64_t seed) {
  TwoLines two({.seed = seed, .paths = {path_of(first, knows), path_of(second, knows)}});
  Flow& bulk = two.flows.start(0, std::uint64_t{1} << 50);
  two.pair.run_for(10s);
  two.pair.lines[cut]->cut();
  std::vector<std::uint64_t> read{bulk.client_reads.read};
  double least = 1e9;
  constexpr Duration kStep = 100ms;
  constexpr std::size_t kSteps = 1s / kStep;  // in a second
  for (std::size_t step = 0; step < 20 * kSteps; ++step) {
    two.pair.run_for(kStep);
    read.push_back(bulk.client_reads.read);
    if (read.size() > kSteps)
      least = std::min(least, static_cast<double>(read.back() - read[read.size() - 1 - kSteps]) * 8);
  }
  two.check();
  return 100 * least / (cut == 0 ? second : first).bound_bits();
}

const char* name_of(Knows knows) { return knows == Knows::rate ? "configured" : "cold"; }

void print_goal(double value, double goal, bool at_least) {
  std::printf(" (goal %g) %s", goal, (at_least ? value >= goal : value <= goal) ? "met" : "MISSED");
}

}  // namespace

void two_paths(std::uint64_t seeds) {
  for (const Knows knows : {Knows::rate, Knows::nothing})
    for (const auto& [first_loss, second_loss] :
         {std::pair(0.0, 0.0), std::pair(0.01, 0.0), std::pair(0.0, 0.01)}) {
      const Shape first{30, 40ms, first_loss}, second{20, 90ms, second_loss};
      std::vector<double> shares, p99s, p50s;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const Sum sum = measure_sum(first, second, knows, seed);
        shares.push_back(sum.share);
        p99s.push_back(sum.p99_ms);
        p50s.push_back(sum.p50_ms);
      }
      std::printf("30 + 20 Mbit/s, 40 and 90 ms, loss %g and %g %%, %s: %.1f %% of the sum, least %.1f",
                  100 * first_loss, 100 * second_loss, name_of(knows), median(shares),
                  *std::ranges::min_element(shares));
      print_goal(median(shares), 92, true);
      std::printf("; messages p50 %.1f, p99 %.1f ms, worst seed %.1f", median(p50s), median(p99s),
                  *std::ranges::max_element(p99s));
      print_goal(median(p99s), 50, false);
      std::printf("\n");
      for (const std::size_t cut : {0u, 1u}) {
        std::vector<double> least;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed)
          least.push_back(least_second(first, second, cut, knows, seed));
        std::printf("  the path of %d Mbit/s cut: least second %.1f %% of the other's, worst seed %.1f",
                    cut == 0 ? 30 : 20, median(least), *std::ranges::min_element(least));
        print_goal(median(least), 85, true);
        std::printf("\n");
      }
      std::fflush(stdout);
    }
}

// What the end of the better line costs a message: its delay beyond that of the same message before, in the
// worst of many cuts, each at another time after a message.
void failing_path() {
  struct Cut {
    const char* name;
    void (*make)(simulator::Line&);
  };
  const Cut cuts[] = {{"both directions", [](simulator::Line& line) { line.cut(); }},
                      {"that of the messages", [](simulator::Line& line) { line.b_to_a().cut(); }},
                      {"that of the answers", [](simulator::Line& line) { line.a_to_b().cut(); }}};
  for (const auto& [first_rtt, second_rtt] :
       {std::pair(40ms, 60ms), std::pair(100ms, 120ms), std::pair(200ms, 200ms)})
    for (const Duration interval : {Duration(5ms), Duration(20ms), Duration(300ms)})
      for (const Cut& cut : cuts) {
        double worst = 0, usual = 0;
        for (int phase = 0; phase < 20; ++phase) {
          const Shape first{30, first_rtt}, second{20, second_rtt};
          TwoLines two({.seed = static_cast<std::uint64_t>(phase + 1),
                        .paths = {path_of(first, Knows::rate), path_of(second, Knows::rate)}});
          Messages messages(two, FlowsOn<PathsPair>::simple_request(), interval);
          two.pair.run_for(2s);
          messages.begin();
          two.pair.run_for(1s);
          usual = messages.delays_ms.percentile(100);
          two.pair.run_for(std::min<Duration>(interval, 100ms) * phase / 20);
          cut.make(*two.pair.lines[0]);
          two.pair.run_for(3s);
          two.check();
          worst = std::max(worst, messages.delays_ms.percentile(100) - usual);
        }
        const double goal = std::chrono::duration<double, std::milli>(first_rtt).count() + 50;
        std::printf("paths of %d and %d ms, a message every %d ms, %s cut: %.1f ms lost",
                    static_cast<int>(first_rtt / 1ms), static_cast<int>(second_rtt / 1ms),
                    static_cast<int>(interval / 1ms), cut.name, worst);
        print_goal(worst, goal, false);
        std::printf("\n");
      }
}

void doubtful_paths(std::uint64_t seeds) {
  struct Case {
    const char* name;
    double loss;
    void (*play)(TwoLines&);
  };
  // The better line alone, or both by turns; or only what b sends.
  const Case cases[] = {
      {"1 % lost on both", 0.01, [](TwoLines&) {}},
      {"3 % lost on both", 0.03, [](TwoLines&) {}},
      {"5 % lost on both", 0.05, [](TwoLines&) {}},
      {"the better one flaps every second", 0,
       [](TwoLines& two) {
         two.pair.network().every(1s, [&two, is_cut = false]() mutable {
           (is_cut = !is_cut) ? two.pair.lines[0]->cut() : two.pair.lines[0]->restore();
         });
       }},
      {"both flap by turns", 0,
       [](TwoLines& two) {
         two.pair.network().every(1s, [&two, turn = 0u]() mutable {
           two.pair.lines[turn % 2]->restore();
           two.pair.lines[++turn % 2]->cut();
         });
       }},
      {"the better one is cut for 200 ms a second", 0,
       [](TwoLines& two) {
         two.pair.network().every(200ms, [&two, turn = 0u]() mutable {
           turn++ % 5 == 0 ? two.pair.lines[0]->cut() : two.pair.lines[0]->restore();
         });
       }},
  };
  for (const bool with_bulk : {false, true})
    for (const auto mode : {config::Fec::Mode::off, config::Fec::Mode::adaptive})
      for (const Case& each : cases) {
        std::vector<double> p50, p99, p999, sent;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
          const Shape first{30, 40ms, each.loss}, second{20, 60ms, each.loss};
          TwoLines two({.seed = seed,
                        .paths = {path_of(first, Knows::rate), path_of(second, Knows::rate)},
                        .features = {.fec = {.mode = mode}}});
          OpenRequest request = FlowsOn<PathsPair>::simple_request();
          request.features.fec.mode = mode;
          if (with_bulk) two.flows.start(0, std::uint64_t{1} << 50, request);
          Messages messages(two, request);
          two.pair.run_for(3s);
          each.play(two);
          messages.begin();
          const auto bytes = [&] {
            return two.pair.b.lines[0]->node->bytes_sent() + two.pair.b.lines[1]->node->bytes_sent();
          };
          const std::uint64_t before = bytes();
          two.pair.run_for(60s);
          two.check();
          p50.push_back(messages.delays_ms.percentile(50));
          p99.push_back(messages.delays_ms.percentile(99));
          p999.push_back(messages.delays_ms.percentile(99.9));
          sent.push_back(static_cast<double>(bytes() - before) * 8e-3 / 60);
        }
        std::printf("%s, %s, FEC %s: messages p50 %.1f, p99 %.1f, p99.9 %.1f ms; %.0f kbit/s\n", each.name,
                    with_bulk ? "beside bulk" : "alone", mode == config::Fec::Mode::off ? "off" : "adaptive",
                    median(p50), median(p99), median(p999), median(sent));
        std::fflush(stdout);
      }
}

}  // namespace longhaul::bench
