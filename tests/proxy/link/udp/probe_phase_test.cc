// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/probe_phase.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

struct ProbedLine : PhaseLine {
  ProbePhase probe;
  SeenCapacity capacity;
  std::uint16_t epoch = 1;
  double pace = 0;

  ProbedLine() { pass(0ms, 300ms); }
  void step() {
    const Plan up = probe.up(line);
    pace = up.gain * line.rate();
    probe.on_begun(epoch, pace, line);
  }
  ProbePhase::Next answer(double rate) {
    probe.on_measured(measured(rate, epoch), rate, line);
    probe.on_measured(measured(rate, static_cast<std::uint16_t>(epoch + 1)), rate, line);
    epoch = static_cast<std::uint16_t>(epoch + 2);
    return probe.conclude(now, line, capacity);
  }
};
}  // namespace

TEST_CASE("while faster steps find room, each is larger, and at most double the rate") {
  ProbedLine at;
  double previous = 0;
  for (int i = 0; i < 10; ++i) {
    at.step();
    const double size = at.pace / at.line.rate() - 1;
    CHECK(size >= previous * 0.999);
    CHECK(size <= 1.0001);
    previous = size;
    REQUIRE(at.answer(at.pace) == ProbePhase::Next::again);
    CHECK(at.line.rate() == Approx(at.pace).epsilon(0.1));
  }
  CHECK(previous == Approx(1));
  CHECK(at.probe.growing());
  CHECK(at.probe.down(at.line).gain == 1);  // no pause between steps
}

TEST_CASE("a step whose excess is in the queue has found no room") {
  ProbedLine at;
  at.step();
  const Plan down = at.probe.down(at.line);
  CHECK(down.phase == Phase::down);
  CHECK(down.gain < 2 - at.pace / at.line.rate());  // as much slower, and a little more
  CHECK(at.answer(kPhaseRate) == ProbePhase::Next::cruise);
  CHECK_FALSE(at.probe.growing());
  CHECK(at.line.rate() == Approx(kPhaseRate).epsilon(0.05));
}

TEST_CASE("a gap without a queue or losses does not lower the rate") {
  ProbedLine at;
  at.step();
  CHECK(at.answer(0.3 * kPhaseRate) == ProbePhase::Next::cruise);
  CHECK(at.line.rate() == kPhaseRate);
}

TEST_CASE("a large step into a long queue drains it, and forgets the losses of that time") {
  ProbedLine at;
  at.probe.grow(0.5);
  at.step();
  at.pass(60ms, 300ms);
  at.line.tests.losses().add(LossByRate::Level::high, at.pace, {1, 700'000, 300'000, 100});
  CHECK(at.answer(kPhaseRate) == ProbePhase::Next::drain);
  CHECK(at.line.tests.losses().total_loss() == 0);
}

TEST_CASE("if the application sent too little, nothing is learnt, and growing ends") {
  ProbedLine at;
  at.probe.grow(0.5);
  at.step();
  CHECK(at.probe.in_pieces());
  CHECK(at.probe.conclude(at.now, at.line, at.capacity) == ProbePhase::Next::cruise);
  CHECK_FALSE(at.probe.growing());
  CHECK_FALSE(at.probe.learnt_by_piece());
  CHECK(at.line.rate() == kPhaseRate);
}

TEST_CASE("a long piece that was carried faster raises the rate, a short one does not") {
  for (const bool is_long : {true, false}) {
    ProbedLine at;
    at.step();
    RateSample piece = at.sample();
    piece.sent_epoch = at.epoch;
    const std::uint64_t bytes = is_long ? 48'000 : 12'000;
    const Duration time = longhaul::link::udp::LineModel::times(1s, static_cast<double>(bytes) / 3e6);
    piece.beginning = DeliveryRate{bytes, bytes, time, time, false};
    at.probe.on_piece(piece, at.line);
    const ProbePhase::Next next = at.probe.conclude(at.now, at.line, at.capacity);
    CHECK(next == (is_long ? ProbePhase::Next::faster : ProbePhase::Next::cruise));
    CHECK(at.probe.learnt_by_piece() == is_long);
    // By no more than was tried.
    CHECK(at.line.rate() == Approx(is_long ? at.pace : kPhaseRate));
  }
}

TEST_CASE("an answer is awaited for a round trip and the queue, not for ever") {
  ProbedLine at;
  at.step();
  CHECK_FALSE(at.probe.is_answered(at.now + 50ms, at.now, at.line));
  CHECK(at.probe.is_answered(at.now + 101ms, at.now, at.line));
}
