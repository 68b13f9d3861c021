// SPDX-License-Identifier: Apache-2.0
// The two laws on lines whose rate or delay changes, or that are cut.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "law_on_line.h"
#include "tests/sweep.h"

using namespace longhaul;
using namespace longhaul::link::udp;
using namespace longhaul::link::udp::law_on_line;
using longhaul::test::seeds;
using longhaul::test::sweep;

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
      for (const double loss : sweep({0.0, 0.01, 0.05}))
        for (const std::uint64_t seed : seeds(3)) {
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
        for (const std::uint64_t seed : seeds(3)) {
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
        for (const Duration jitter : sweep({0ms, 5ms, 10ms}))
          for (const double slower : sweep({0.85, 0.75, 0.5})) {
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

TEST_CASE("a line whose rate varies all the time, as a radio's, is used well with a short queue") {
  for (const Law law : {Law::paced, Law::measured})
    for (const std::uint64_t seed : seeds(3)) {
      INFO("law " << static_cast<int>(law) << ", seed " << seed);
      constexpr double kMost = 12e6;
      constexpr Duration kEach = 100ms;
      Path path{.bits = kMost / 2, .rtt = 50ms, .queue_bytes = 750'000};
      Run run(path, law, kMost, seed);
      run.network.run_for(2s);
      std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed));
      std::normal_distribution<double> step(0, 760e3);
      const auto vary = [&](Duration time) {
        double mean = 0;
        for (Duration passed = 0s; passed < time; passed += kEach) {
          const double bits = path.bits + step(random);  // reflected at both ends
          path.bits = std::max(bits > kMost ? 2 * kMost - bits : std::abs(bits), 200e3);
          run.change(path);
          run.network.run_for(kEach);
          mean += path.bits * seconds(kEach) / seconds(time);
        }
        return mean;
      };
      (void)vary(20s);
      run.flow.sender.reset_rtt();
      const TimePoint from = run.network.now();
      const double mean = vary(40s);
      CHECK(run.flow.rate(from, run.network.now()) > 0.9 * mean);
      CHECK(run.flow.sender.rtt_ms().percentile(50) < 50 + 50);
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
