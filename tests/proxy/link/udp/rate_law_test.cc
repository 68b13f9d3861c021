// SPDX-License-Identifier: Apache-2.0
// The two laws on lines that behave, misbehave and change, in virtual time with the real loss detection and
// pacing. The whole field of figures is in rate_figures_test.cc.
#include <catch2/catch.hpp>

#include "proxy/link/udp/measured_law.h"
#include "proxy/link/udp/paced_law.h"
#include "tests/proxy/link/udp/bulk_model.h"
#include "tests/simulator/tcp.h"

using namespace longhaul;
using namespace longhaul::link::udp;
using namespace longhaul::simulator;
using namespace std::chrono_literals;

namespace {
constexpr double kRate = 51.84e6;  // bits per second

struct Path {
  double bits = kRate;
  Duration rtt = 100ms;
  double loss = 0;
  std::uint64_t queue_bytes = 0;  // 0: what the line carries in a round trip, 64 KiB at least
  Duration jitter{0};             // each packet is late by up to so much, order is kept
};

DirectionConfig direction(const Path& path) {
  const double round_trip = path.bits / 8 * std::chrono::duration<double>(path.rtt).count();
  const auto queue = path.queue_bytes
                         ? path.queue_bytes
                         : std::max<std::uint64_t>(65536, static_cast<std::uint64_t>(round_trip));
  return {.link = {.rate_bits = static_cast<std::uint64_t>(path.bits),
                   .queue_bytes = queue,
                   .delay = path.rtt / 2 + path.jitter / 2,
                   .jitter = path.jitter / 2,
                   .loss = path.loss}};
}

std::unique_ptr<RateLaw> measured(TimePoint now, std::uint64_t seed = 1) {
  return std::make_unique<MeasuredLaw>(MeasuredConfig{.seed = seed}, now);
}
std::unique_ptr<RateLaw> paced(double bits, TimePoint now, std::uint64_t seed = 1) {
  return std::make_unique<PacedLaw>(PacedConfig{.rate = static_cast<std::uint64_t>(bits / 8), .seed = seed},
                                    now);
}
std::unique_ptr<RateLaw> warm(double bits, Duration rtt, TimePoint now) {
  return std::make_unique<MeasuredLaw>(
      MeasuredConfig{.memory = PathMemory{static_cast<std::uint64_t>(bits / 8), rtt}}, now);
}

// One flow on one line.
struct Run {
  enum class Law { paced, measured, warm };
  Run(const Path& at, Law law, double told = kRate, std::uint64_t seed = 1)
      : path(at),
        network(seed),
        line(network.add_line(LineConfig::symmetric(direction(path)))),
        flow(network, line, 1,
             law == Law::paced      ? paced(told, network.now())
             : law == Law::measured ? measured(network.now())
                                    : warm(told, path.rtt, network.now()),
             path.rtt),
        start(network.now()) {}

  void change(const Path& to) {
    path = to;
    line.a_to_b().change(direction(to));
    line.b_to_a().change(direction(to));
  }
  // Of what the line can carry, in the time to come.
  double share(Duration time) {
    const TimePoint from = network.now();
    flow.sender.reset_rtt();
    network.run_for(time);
    return flow.rate(from, network.now()) / (path.bits * (1 - path.loss));
  }
  double rtt_p99() const { return flow.sender.rtt_ms().percentile(99); }
  double rtt_limit() const { return 1.25 * std::chrono::duration<double, std::milli>(path.rtt).count() + 5; }
  // Round trips until the line's rate leaves the sender.
  double round_trips_to(double part) const {
    const Duration window = std::max<Duration>(path.rtt / 4, 10ms);
    for (TimePoint at = start; at < network.now(); at += 1ms) {
      if (flow.rate(at, at + window) >= part * path.bits * (1 - path.loss))
        return std::chrono::duration<double>(at - start - path.rtt / 2) /
               std::chrono::duration<double>(path.rtt);
    }
    return 1000;
  }

  Path path;
  Network network;
  Line& line;
  BulkFlow flow;
  TimePoint start;
};
using Law = Run::Law;
}  // namespace

TEST_CASE("alone on a line, both laws fill it and leave no queue, whatever the random loss") {
  for (const Law law : {Law::paced, Law::measured})
    for (const Duration rtt : {0ms, 30ms, 250ms})
      for (const double loss : {0.0, 0.01, 0.1, 0.2}) {
        Run run({.rtt = rtt, .loss = loss}, law);
        INFO((law == Law::paced ? "paced" : "measured") << ", " << rtt / 1ms << " ms, loss " << loss);
        run.network.run_for(3s);
        CHECK(run.share(7s) > 0.97);
        CHECK(run.rtt_p99() < run.rtt_limit());
        CHECK(run.flow.sender.sent().counters().spurious_losses == 0);
      }
}

TEST_CASE("the rate of an unknown line is found within four round trips, of a known one within two") {
  for (const double bits : {10e6, kRate, 200e6})
    for (const Duration rtt : {30ms, 100ms, 250ms})
      for (const double loss : {0.0, 0.1}) {
        INFO(bits / 1e6 << " Mbit/s, " << rtt / 1ms << " ms, loss " << loss);
        Run cold({.bits = bits, .rtt = rtt, .loss = loss}, Law::measured);
        cold.network.run_for(8 * rtt);
        CHECK(cold.round_trips_to(0.9) <= 4);
        Run warm({.bits = bits, .rtt = rtt, .loss = loss}, Law::warm, bits);
        warm.network.run_for(8 * rtt);
        CHECK(warm.round_trips_to(0.9) <= 2);
      }
}

TEST_CASE("on a slow line a small packet between full ones is not taken for a queue") {
  for (const Law law : {Law::paced, Law::measured})
    for (const double bits : {512e3, 1.544e6, 10e6})
      for (const unsigned every : {5u, 20u}) {
        Run run({.bits = bits, .rtt = 30ms}, law, bits);
        run.flow.sender.set_small_packets(every);
        INFO((law == Law::paced ? "paced, " : "measured, ") << bits << " bit/s, one of " << every);
        run.network.run_for(3s);
        CHECK(run.share(20s) > 0.96);
      }
}

TEST_CASE("jitter is not taken for a queue") {
  for (const double bits : {1.544e6, 10e6, kRate})
    for (const Duration rtt : {30ms, 100ms})
      for (const Duration jitter : {1ms, 5ms, 10ms}) {
        Run run({.bits = bits, .rtt = rtt, .jitter = jitter}, Law::measured);
        INFO(bits << " bit/s, " << rtt / 1ms << " ms, late by up to " << jitter / 1ms << " ms");
        run.network.run_for(3s);
        // Where many packets share a wait, the least of them has waited, too; some of that looks like a
        // queue.
        CHECK(run.share(20s) > (jitter > 5ms ? 0.87 : 0.93));
      }
}

TEST_CASE("on a slow line the packet train that measures the rate is not followed by another queue") {
  Run run({.bits = 1.544e6, .rtt = 30ms}, Law::measured);
  run.network.run_for(300ms);  // the train has been on the line for 250 ms
  CHECK(run.share(4s) > 0.96);
  CHECK(run.flow.sender.sent().counters().lost_packets == 0);
}

TEST_CASE("a configured rate above the line's does not keep the queue full") {
  for (const Law law : {Law::paced, Law::warm})
    for (const double times : {1.05, 1.5, 5.0}) {
      INFO((law == Law::paced ? "paced" : "warm") << ", told " << times << " times the rate");
      Run run({.loss = 0.01}, law, times * kRate);
      run.network.run_for(4s);
      CHECK(run.share(10s) > 0.95);
      CHECK(run.rtt_p99() < run.rtt_limit());
    }
}

TEST_CASE("traffic beyond the rate of a line that drops without queueing is reduced soon") {
  for (const Law law : {Law::paced, Law::measured, Law::warm})
    for (const double loss : {0.0, 0.05}) {
      INFO("law " << static_cast<int>(law) << ", loss " << loss);
      Run run({.loss = loss, .queue_bytes = 32400}, law, 1.5 * kRate);
      run.network.run_for(10s);
      const auto before = run.flow.sender.sent().counters().sent_packets;
      CHECK(run.share(20s) > 0.9);
      const auto sent = run.flow.sender.sent().counters().sent_packets - before;
      CHECK(static_cast<double>(sent) * 1500 * 8 / 20 < 1.06 * kRate);
    }
}

TEST_CASE("a configured rate that fits again is used again") {
  Run run({}, Law::paced);
  run.network.run_for(2s);
  auto& law = dynamic_cast<PacedLaw&>(run.flow.sender.law());
  CHECK_FALSE(law.guarded());
  run.change({.bits = 20e6});
  run.network.run_for(4s);
  CHECK(law.guarded());
  CHECK(run.share(4s) > 0.95);
  run.change({});
  run.network.run_for(15s);
  CHECK_FALSE(law.guarded());
  CHECK(run.share(5s) > 0.99);
}

TEST_CASE("a longer path is not taken for a queue") {
  for (const Law law : {Law::paced, Law::measured})
    for (const auto& [before, after] :
         {std::pair{20ms, 120ms}, {50ms, 600ms}, {10ms, 40ms}, {100ms, 150ms}, {50ms, 70ms}})
      for (const double loss : {0.0, 0.01, 0.05})
        for (const std::uint64_t seed : {1u, 2u, 3u}) {
          INFO("law " << static_cast<int>(law) << ", " << before / 1ms << " to " << after / 1ms
                      << " ms, loss " << loss << ", seed " << seed);
          Run run({.rtt = before, .loss = loss}, law, kRate, seed);
          run.network.run_for(10s);
          run.change({.rtt = after, .loss = loss});
          run.network.run_for(3 * after + 500ms);
          CHECK(run.share(1s) > 0.8);
          CHECK(run.share(5s) > 0.95);
          CHECK(run.rtt_p99() < run.rtt_limit());
        }
}

TEST_CASE("a path that is longer and slower at once is not taken for a queue") {
  struct Change {
    Duration before, after;
    double bits;
  };
  for (const Law law : {Law::paced, Law::measured})
    for (const Change& change : {Change{20ms, 120ms, 20e6},
                                 {50ms, 600ms, 20e6},
                                 {50ms, 600ms, kRate},
                                 {20ms, 120ms, 40e6},
                                 {20ms, 60ms, 5e6},
                                 {30ms, 80ms, 10e6}})
      for (const double loss : {0.0, 0.05})
        for (const std::uint64_t seed : {1u, 2u, 3u}) {
          INFO("law " << static_cast<int>(law) << ", " << change.before / 1ms << " to " << change.after / 1ms
                      << " ms, to " << change.bits << " bit/s, loss " << loss << ", seed " << seed);
          Run run({.rtt = change.before, .loss = loss}, law, kRate, seed);
          run.network.run_for(10s);
          run.change({.bits = change.bits, .rtt = change.after, .loss = loss});
          run.network.run_for(3 * change.after + 500ms);
          CHECK(run.share(1s) > 0.7);
          // Long enough for a loss test: three round trips at three quarters of the rate.
          CHECK(run.share(std::max<Duration>(5s, 20 * change.after)) > 0.93);
          CHECK(run.rtt_p99() < run.rtt_limit());
        }
}

TEST_CASE("a path that is longer in one direction, and shorter again, is used as before") {
  for (const Law law : {Law::paced, Law::measured})
    for (const bool there : {true, false}) {
      INFO("law " << static_cast<int>(law) << (there ? ", there" : ", back"));
      Run run({.rtt = 50ms}, law);
      run.network.run_for(10s);
      (there ? run.line.a_to_b() : run.line.b_to_a()).change(direction({.rtt = 600ms}));
      run.network.run_for(2s);
      CHECK(run.share(5s) > 0.95);
      run.change({.rtt = 50ms});
      run.network.run_for(1s);
      CHECK(run.share(5s) > 0.95);
      CHECK(run.rtt_p99() < run.rtt_limit());
    }
}

TEST_CASE("the law follows a line that becomes slower or faster") {
  Run run({}, Law::measured);
  run.network.run_for(5s);
  run.change({.bits = 10e6});
  run.network.run_for(5s);
  CHECK(run.share(5s) > 0.93);
  CHECK(run.rtt_p99() < run.rtt_limit() + 5);
  run.change({.bits = 100e6});
  run.network.run_for(6s);
  CHECK(run.share(5s) > 0.95);
}

TEST_CASE("the law follows a line that becomes a little slower even if packets are randomly late") {
  for (const Law law : {Law::paced, Law::measured})
    for (const double bits : {10e6, kRate})
      for (const Duration rtt : {30ms, 100ms})
        for (const Duration jitter : {0ms, 5ms, 10ms})
          for (const double slower : {0.85, 0.75, 0.5}) {
            INFO("law " << static_cast<int>(law) << ", " << bits << " bit/s, " << rtt / 1ms
                        << " ms, late by up to " << jitter / 1ms << " ms, then " << slower);
            Run run({.bits = bits, .rtt = rtt, .jitter = jitter}, law, bits);
            run.network.run_for(5s);
            run.change({.bits = slower * bits, .rtt = rtt, .jitter = jitter});
            run.network.run_for(5s);
            CHECK(run.share(10s) > 0.93);
            const double late = std::chrono::duration<double, std::milli>(jitter).count();
            CHECK(run.rtt_p99() < run.rtt_limit() + 1.5 * late + 5);
          }
}

TEST_CASE("a line is found again after packets were spaced wider than its round trip") {
  // Remembered so much slower than it is: a packet each 23, or each 230 ms.
  for (const double slower : {100, 1000}) {
    INFO(slower);
    Run run({.rtt = 1ms}, Law::warm, kRate / slower);
    run.network.run_for(15s);
    CHECK(run.share(5s) > 0.9);
  }
}

TEST_CASE("a short stall of a host is not taken for a queue") {
  for (const Duration rtt : {1ms, 30ms}) {
    Run run({.rtt = rtt}, Law::paced);
    run.network.run_for(2s);
    for (int i = 0; i < 10; ++i) {
      run.flow.receiver.stand_still(run.network.now() + 150ms);
      run.network.run_for(500ms);
      CHECK_FALSE(dynamic_cast<PacedLaw&>(run.flow.sender.law()).guarded());
    }
  }
}

TEST_CASE("a short stall of the line or a host is not taken for a slower line") {
  enum class Who { line, receiver, sender };
  for (const Law law : {Law::paced, Law::measured})
    for (const Who who : {Who::line, Who::receiver, Who::sender})
      for (const Duration rtt : {10ms, 40ms, 100ms})
        for (const Duration still : {30ms, 45ms, 80ms, 150ms}) {
          INFO("law " << static_cast<int>(law) << ", who " << static_cast<int>(who) << ", " << rtt / 1ms
                      << " ms, still for " << still / 1ms << " ms");
          Run run({.rtt = rtt, .queue_bytes = 2'000'000}, law);
          run.network.run_for(3s);
          const auto* finding = dynamic_cast<MeasuredLaw*>(&run.flow.sender.law());
          const TimePoint from = run.network.now();
          double least = finding ? finding->line_rate() : kRate / 8;
          for (int i = 0; i < 20; ++i) {
            if (who == Who::line) {
              const Path usual = run.path;
              Path hardly = usual;
              hardly.bits = 64e3;
              run.change(hardly);
              run.network.run_for(still);
              run.change(usual);
            } else if (who == Who::receiver) {
              run.flow.receiver.stand_still(run.network.now() + still);
              run.network.run_for(still);
            } else {
              run.flow.sender.stand_still(run.network.now() + still);
              run.flow.node.wake();
              run.network.run_for(still);
            }
            for (int j = 0; j < 50; ++j) {
              run.network.run_for(10ms);
              if (finding) least = std::min(least, finding->line_rate());
            }
          }
          CHECK(least * 8 > 0.75 * kRate);
          const double moves = 500ms / std::chrono::duration<double, std::milli>(500ms + still);
          CHECK(run.flow.rate(from, run.network.now()) > 0.87 * moves * kRate);
        }
}

TEST_CASE("a sender that stalls briefly loses nothing in a short queue afterwards") {
  Run run({.bits = 200e6, .rtt = 1ms}, Law::paced, 200e6);
  run.network.run_for(1s);
  const auto before = run.flow.sender.sent().counters().lost_packets;
  for (int i = 0; i < 20; ++i) {
    run.flow.sender.stand_still(run.network.now() + 20ms);
    run.flow.node.wake();
    run.network.run_for(100ms);
  }
  CHECK(run.flow.sender.sent().counters().lost_packets == before);
  CHECK_FALSE(dynamic_cast<PacedLaw&>(run.flow.sender.law()).guarded());
}

TEST_CASE("after a cut of thirty seconds both laws recover") {
  for (const Law law : {Law::paced, Law::measured}) {
    INFO((law == Law::paced ? "paced" : "measured"));
    Run run({.loss = 0.01}, law);
    run.network.run_for(5s);
    run.line.cut();
    run.network.run_for(30s);
    run.line.restore();
    run.network.run_for(8s);
    CHECK(run.share(5s) > 0.95);
  }
}

TEST_CASE("a sender that pauses does not burst afterwards, and finds the rate again") {
  for (const Law law : {Law::paced, Law::measured}) {
    INFO((law == Law::paced ? "paced" : "measured"));
    Run run({}, law);
    run.flow.sender.set_bursts(2s, 3s);
    run.network.run_for(20s);
    // 2 of each 5 seconds, without what the round trip and the first look at the line cost.
    CHECK(run.share(20s) > 0.36);
    CHECK(run.rtt_p99() < run.rtt_limit());
  }
}

TEST_CASE("reordered packets are not taken for lost ones") {
  for (const Law law : {Law::paced, Law::measured}) {
    Path path;
    Network network(1);
    auto config = LineConfig::symmetric(direction(path));
    config.a_to_b.link.reorder = 0.02;
    config.a_to_b.link.reorder_by = 5ms;
    Line& line = network.add_line(config);
    BulkFlow flow(network, line, 1, law == Law::paced ? paced(kRate, network.now()) : measured(network.now()),
                  path.rtt);
    network.run_for(3s);
    const auto before = flow.sender.sent().counters();
    const TimePoint from = network.now();
    network.run_for(10s);
    CHECK(flow.sender.sent().counters().lost_packets == before.lost_packets);
    CHECK(flow.rate(from, network.now()) > 0.97 * kRate);
  }
}

TEST_CASE("two links share a line within ten per cent of each other, and leave no queue") {
  for (const bool told : {true, false})
    for (const Duration rtt : {30ms, 100ms, 250ms}) {
      INFO((told ? "paced, " : "measured, ") << rtt / 1ms << " ms");
      std::vector<double> ratios, delays;
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Network network(seed);
        Line& line = network.add_line(LineConfig::symmetric(direction({.rtt = rtt})));
        const auto law = [&](std::uint64_t of) {
          return told ? paced(kRate, network.now(), of) : measured(network.now(), of);
        };
        BulkFlow first(network, line, 1, law(2 * seed - 1), rtt);
        BulkFlow second(network, line, 2, law(2 * seed), rtt);
        network.run_for(30s);
        first.sender.reset_rtt();
        network.run_for(30s);
        const double one = first.rate(network.now() - 30s, network.now());
        const double other = second.rate(network.now() - 30s, network.now());
        CHECK(one + other > 0.95 * kRate);
        ratios.push_back(std::max(one, other) / std::min(one, other));
        delays.push_back(first.sender.rtt_ms().mean());
      }
      std::ranges::sort(ratios);
      std::ranges::sort(delays);
      CHECK(ratios[2] < 1.1);
      CHECK(ratios[4] < 1.5);  // by chance another link is taken for a sender that fills queues
      CHECK(delays[2] < 1.25 * std::chrono::duration<double, std::milli>(rtt).count() + 5);
    }
}

TEST_CASE("beside a CUBIC flow on a lossless line neither side starves") {
  for (const bool told : {true, false})
    for (const Duration rtt : {30ms, 100ms}) {
      INFO((told ? "paced, " : "measured, ") << rtt / 1ms << " ms");
      Network network(1);
      Line& line = network.add_line(LineConfig::symmetric(direction({.rtt = rtt})));
      TcpReceiver receiver;
      TcpSender sender({.to = {2, 9}, .start = network.now()}, std::make_unique<CubicLaw>());
      auto& node = network.attach(sender, line, LineEnd::a, {1, 9});
      network.attach(receiver, line, LineEnd::b, {2, 9});
      node.wake();
      BulkFlow flow(network, line, 1, told ? paced(kRate, network.now()) : measured(network.now()), rtt);
      network.run_for(60s);
      CHECK(flow.rate(network.now() - 40s, network.now()) > 0.3 * kRate);
      CHECK(receiver.meter().bits_per_second(network.now() - 40s, network.now()) > 0.3 * kRate * 1448 / 1500);
    }
}

TEST_CASE("lost, late or bunched ACKs do not stop a sender") {
  for (const Law law : {Law::paced, Law::measured}) {
    INFO((law == Law::paced ? "paced" : "measured"));
    Path path;
    Network network(1);
    auto config = LineConfig::symmetric(direction(path));
    config.b_to_a.link.loss = 0.3;
    config.interrupt_interval = 4ms;
    Line& line = network.add_line(config);
    BulkFlow flow(network, line, 1, law == Law::paced ? paced(kRate, network.now()) : measured(network.now()),
                  path.rtt);
    network.run_for(4s);
    const TimePoint from = network.now();
    network.run_for(10s);
    CHECK(flow.rate(from, network.now()) > 0.95 * kRate);
    CHECK(flow.sender.sent().counters().lost_packets < 200);
  }
}
