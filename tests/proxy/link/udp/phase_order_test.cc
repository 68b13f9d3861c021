// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/phase_order.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using AnswerKind = QueueAnswer::Kind;

namespace {
struct OrderedLine : PhaseLine {
  PhaseOrder phases{{}, line};

  OrderedLine() { pass(0ms, 300ms); }
  // The phases that follow each other meanwhile; the present one first.
  std::vector<Phase> run(Duration queue, Duration time) {
    std::vector<Phase> seen{phases.present().phase()};
    for (const TimePoint end = now + time; now < end;) {
      pass(queue, 1ms);
      if (!phases.starting() && !phases.reacting()) phases.step(now, 1'000'000);
      if (!phases.in(seen.back())) seen.push_back(phases.present().phase());
    }
    return seen;
  }
};

// A thousand packets of the present phase, some of them lost.
RateSample with_losses(const OrderedLine& at, std::vector<EpochTally>& tallies) {
  tallies = {{at.phases.present().number(), 1'400'000, 100'000, 60}};
  RateSample sample = at.sample();
  sample.epochs = tallies;
  return sample;
}
}  // namespace

TEST_CASE("an unknown line begins with a train, whose answer begins the ramp") {
  OrderedLine at;
  at.phases.begin_unknown(at.now);
  CHECK(at.phases.in(Phase::train));
  CHECK(at.phases.starting());
  CHECK(at.phases.window() == 32 * 1500);
  CHECK_FALSE(at.phases.use().capacity);
  RateSample train = at.sample();
  train.round = 1;
  train.delivery = DeliveryRate{32 * 1500, 32 * 1500, 48ms, 48ms, false};
  at.phases.on_start(train);
  CHECK(at.phases.in(Phase::ramp));
  CHECK(at.line.rate() == Approx(kPhaseRate / 2));
  CHECK(at.phases.pacing_rate() == Approx(kPhaseRate / 2).epsilon(0.001));
}

TEST_CASE("a remembered line is used at once, and probed by faster and slower steps") {
  OrderedLine at;
  at.phases.begin_remembered(at.now);
  CHECK(at.phases.pacing_rate() == 1'000'000);
  CHECK_FALSE(at.phases.knows_rate());  // until it was measured
  CHECK_FALSE(at.phases.has_learnt());
  const std::vector<Phase> seen = at.run(0ms, 800ms);
  CHECK(seen == std::vector{Phase::cruise, Phase::up, Phase::down, Phase::cruise});
}

TEST_CASE("behind another law the queue drains first, and numbers continue") {
  OrderedLine at;
  at.phases.begin_after(kPhaseRate / 2, 41, at.now);
  CHECK(at.phases.in(Phase::drain));
  CHECK(at.phases.present().number() == 42);
  CHECK(at.line.rate() == kPhaseRate / 2);
  CHECK(at.phases.pacing_rate() < 500'000);
  CHECK(at.phases.knows_rate());
  CHECK(at.run(0ms, 10ms).back() == Phase::cruise);
}

TEST_CASE("a rate that is lost is measured anew, with a few packets") {
  OrderedLine at;
  at.phases.begin_remembered(at.now);
  at.phases.carry_out({AnswerKind::give_way, 10'000}, at.now);
  (void)at.run(0ms, 490ms);
  CHECK(at.phases.in(Phase::cruise));
  (void)at.run(0ms, 20ms);
  CHECK(at.phases.in(Phase::train));
  CHECK(at.phases.window() == 8 * 1500);
  CHECK(at.line.rate() > kPhaseRate);
}

TEST_CASE("a remembered rate is lost no sooner than any other") {
  OrderedLine at;
  at.phases.begin_remembered(at.now);
  at.line.set_rate(10'000);
  CHECK(at.run(0ms, 150ms).back() == Phase::cruise);
  CHECK(at.run(0ms, 5s).back() == Phase::train);
}

TEST_CASE("a measurement made before the first packets at the rate found arrived says nothing about that rate") {
  OrderedLine at;
  at.phases.begin_unknown(at.now);
  const std::uint16_t train = at.phases.present().number();
  RateSample answer = at.sample();
  answer.round = 1;
  answer.delivery = DeliveryRate{32 * 1500, 32 * 1500, 48ms, 48ms, false};
  at.phases.on_start(answer);
  at.phases.on_longer_path(at.now);  // nothing is to be undone yet
  CHECK(at.phases.in(Phase::ramp));
  CHECK_FALSE(at.phases.on_measured(at.measured(kPhaseRate, train), kPhaseRate));
  CHECK(at.phases.has_learnt());
}

TEST_CASE("a standstill drains the queue at the same rate, and not twice at once") {
  OrderedLine at;
  at.phases.begin_remembered(at.now);
  at.phases.carry_out({AnswerKind::standstill}, at.now);
  CHECK(at.phases.in(Phase::drain));
  CHECK(at.line.rate() == kPhaseRate);
  (void)at.run(0ms, 10ms);
  REQUIRE(at.phases.in(Phase::cruise));
  CHECK_FALSE(at.phases.may_drain(at.now));
  at.phases.carry_out({AnswerKind::standstill}, at.now);
  CHECK(at.phases.in(Phase::cruise));
}

TEST_CASE("giving way drains the queue, and continues at the lower rate") {
  OrderedLine at;
  at.phases.begin_remembered(at.now);
  at.phases.carry_out({AnswerKind::give_way, kPhaseRate / 4}, at.now);
  CHECK(at.phases.in(Phase::drain));
  CHECK(at.line.rate() == kPhaseRate / 4);
  CHECK(at.run(0ms, 10ms).back() == Phase::cruise);
}

TEST_CASE("competing ends when the path turns out to be longer, and its losses are forgotten") {
  OrderedLine at;
  at.phases.begin_remembered(at.now);
  at.phases.carry_out({AnswerKind::follow}, at.now);
  CHECK(at.phases.following());
  CHECK_FALSE(at.phases.competing());
  // The queue stays, however little is sent.
  for (std::uint64_t i = 0; i < 20 && at.phases.following(); ++i, at.now += 200ms) {
    RateSample stays = at.measured(kPhaseRate);
    stays.acked_bytes = 15'000;
    stays.rtt = 2 * kPhaseRtt;
    stays.forward_delay = 3 * kPhaseRtt / 2;
    at.line.on_sample(stays, at.phases.use());
    at.phases.on_following(stays, true);
  }
  CHECK(at.phases.competing());
  CHECK(at.phases.use().competes);
  CHECK(at.phases.has_learnt());
  at.pass(0ms, 300ms);
  std::vector<EpochTally> tallies;
  at.phases.note(with_losses(at, tallies));
  CHECK(at.line.tests.losses().total_loss() > 0);
  at.phases.on_longer_path(at.now);
  CHECK(at.phases.in(Phase::drain));
  CHECK(at.line.tests.losses().total_loss() == 0);
}

TEST_CASE("a line that has become steady is probed again at the rate that arrived, and its losses are kept") {
  OrderedLine at;
  at.phases.begin_remembered(at.now);
  std::vector<EpochTally> tallies;
  at.phases.note(with_losses(at, tallies));
  const double loss = at.line.tests.losses().total_loss();
  CHECK(loss > 0);
  at.phases.carry_out({AnswerKind::follow}, at.now);
  RateSample steady = at.measured(kPhaseRate / 2);
  steady.rtt = kPhaseRtt + kPhaseRtt / 4;
  steady.forward_delay = kPhaseRtt / 2 + kPhaseRtt / 4;
  for (int i = 0; i < 1000 && at.phases.following(); ++i) {
    steady.now = at.now += 20ms;
    at.line.on_sample(steady, at.phases.use());
    at.phases.on_following(steady, i % 5 == 0);
  }
  CHECK(at.phases.in(Phase::drain));
  CHECK(at.line.rate() == Approx(kPhaseRate / 2 / (1 - loss)).epsilon(0.01));
  CHECK(at.line.tests.losses().total_loss() == loss);
  CHECK_FALSE(at.line.standing.may_give_way(at.now, at.line.span()));
}

TEST_CASE("a queue above the meant one eases the rate, once per round trip") {
  OrderedLine at;
  at.phases.begin_remembered(at.now);
  at.phases.ease(at.now);
  CHECK(at.line.rate() == kPhaseRate);
  at.pass(12ms, 300ms);
  at.phases.ease(at.now);
  const double eased = at.line.rate();
  CHECK(eased < kPhaseRate);
  at.phases.ease(at.now);
  CHECK(at.line.rate() == eased);
}

TEST_CASE("losses count at the rate of the phase that sent them, except while a queue drains or overflows") {
  OrderedLine at;
  std::vector<EpochTally> tallies;
  at.phases.begin_after(kPhaseRate, 1, at.now);
  at.phases.note(with_losses(at, tallies));
  CHECK(at.line.tests.losses().total_loss() == 0);
  (void)at.run(0ms, 10ms);
  REQUIRE(at.phases.in(Phase::cruise));
  at.pass(50ms, 300ms);
  at.phases.note(with_losses(at, tallies));
  CHECK(at.line.tests.losses().total_loss() == 0);
  at.pass(0ms, 300ms);
  at.phases.note(with_losses(at, tallies));
  CHECK(at.line.tests.losses().total_loss() == Approx(1. / 15).epsilon(0.01));
}
