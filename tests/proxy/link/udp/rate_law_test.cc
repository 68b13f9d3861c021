// SPDX-License-Identifier: Apache-2.0
// The two laws on lines that behave and misbehave. Lines that change are in rate_law_changes_test.cc, stalls
// in rate_law_stalls_test.cc, other senders in rate_law_sharing_test.cc, the whole field of figures in
// rate_figures_test.cc.
#include <catch2/catch.hpp>

#include "law_on_line.h"
#include "tests/sweep.h"

using namespace longhaul;
using namespace longhaul::link::udp;
using namespace longhaul::link::udp::law_on_line;
using longhaul::test::sweep;

TEST_CASE("alone on a line, both laws fill it and leave no queue, whatever the random loss") {
  for (const Law law : {Law::paced, Law::measured})
    for (const Duration rtt : sweep({0ms, 30ms, 250ms}))
      for (const double loss : sweep({0.0, 0.01, 0.1, 0.2})) {
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

TEST_CASE("a configured rate is not kept where nearly all is dropped, however few packets a test sends") {
  constexpr double kCarried = 0.03 * 37e6;
  Run run({.bits = 37e6, .rtt = 100ms}, Law::paced, 37e6);
  auto policed = direction(run.path);
  policed.policer = Policer{.rate_bits = static_cast<std::uint64_t>(kCarried), .burst_bytes = 65'536};
  run.line.a_to_b().change(policed);
  run.network.run_for(5s);
  const TimePoint from = run.network.now();
  const auto before = run.flow.sender.sent().counters().sent_packets;
  run.network.run_for(5s);
  const auto sent = run.flow.sender.sent().counters().sent_packets - before;
  CHECK(static_cast<double>(sent) * 1500 * 8 / 5 < 3 * kCarried);
  CHECK(run.flow.rate(from, run.network.now()) > 0.6 * kCarried);
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
