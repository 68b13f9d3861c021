// SPDX-License-Identifier: Apache-2.0
// The two laws where the line or a host stands still for a moment.
#include <catch2/catch.hpp>

#include "law_on_line.h"
#include "tests/sweep.h"

using namespace longhaul;
using namespace longhaul::link::udp;
using namespace longhaul::link::udp::law_on_line;
using longhaul::test::sweep;

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
      for (const Duration rtt : sweep({10ms, 40ms, 100ms}))
        for (const Duration still : sweep({30ms, 45ms, 80ms, 150ms})) {
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

TEST_CASE("a line that pauses for some milliseconds again and again, as Wi-Fi does, is used") {
  for (const Law law : {Law::paced, Law::measured}) {
    Run run({.bits = 120e6, .rtt = 30ms, .queue_bytes = 1'000'000}, law, 120e6);
    const Path moves = run.path;
    Path stands = moves;
    stands.bits = 1e3;
    const auto pauses = [&](int times) {
      for (int i = 0; i < times; ++i) {
        run.change(moves);
        run.network.run_for(std::chrono::milliseconds(2 + i * 7 % 5));  // 2 to 6
        run.change(stands);
        run.network.run_for(std::chrono::milliseconds(2 + i * 13 % 9));  // 2 to 10
      }
    };
    pauses(900);
    const TimePoint from = run.network.now();
    run.flow.sender.reset_rtt();
    pauses(900);
    INFO("law " << static_cast<int>(law));
    CHECK(run.flow.rate(from, run.network.now()) > 0.9 * 0.4 * moves.bits);
    CHECK(run.flow.sender.rtt_ms().percentile(50) < 30 + 30);
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
