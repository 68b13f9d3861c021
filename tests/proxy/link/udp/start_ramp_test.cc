// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/start_ramp.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using RampNext = StartRamp::Next;

namespace {

constexpr std::uint32_t kRampPacket = 1500;

struct Start {
  StartRamp ramp{kRampPacket};
  LineWatch watch{100ms};
  double line = 0;
  double most = 1e18;

  StartRamp::Around around() { return {watch, 100ms, 0, line, most}; }
  // The train as it arrives: 32 packets within this time.
  StartRamp::Step train(Duration time) {
    RateSample sample{.now = TimePoint(1h), .round = 1};
    sample.delivery = DeliveryRate{.delivered_bytes = 32 * kRampPacket,
                                   .dispatched_bytes = 32 * kRampPacket,
                                   .interval = time,
                                   .arrival_interval = time};
    const auto step = ramp.on_train(sample, around());
    line = step.rate;
    return step;
  }
  // A round trip in which the line took all that was sent.
  StartRamp::Step round(std::uint64_t number, double rate, double loss = 0) {
    const auto bytes = static_cast<std::int64_t>(rate / 10);
    const EpochTally tally{.acked_bytes = static_cast<std::int64_t>(static_cast<double>(bytes) * (1 - loss)),
                           .lost_bytes = static_cast<std::int64_t>(static_cast<double>(bytes) * loss)};
    RateSample sample{.now = TimePoint(1h), .round = number, .epochs = {&tally, 1}};
    sample.delivery = DeliveryRate{.delivered_bytes = static_cast<std::uint64_t>(tally.acked_bytes),
                                   .dispatched_bytes = static_cast<std::uint64_t>(bytes),
                                   .interval = 100ms,
                                   .arrival_interval = 100ms};
    const auto step = ramp.on_ramp(sample, rate, around());
    if (step.next == RampNext::ramp) line = step.rate;
    return step;
  }
};

}  // namespace

TEST_CASE("a train that the line spread out gives its rate: half of it for a round trip, then all of it") {
  Start start;
  const auto first = start.train(10ms);
  CHECK(first.next == RampNext::ramp);
  CHECK(first.rate == Approx(32 * kRampPacket / 0.010 / 2));
  CHECK(first.capacity == Approx(32 * kRampPacket / 0.010));
  const auto second = start.round(2, first.rate);
  CHECK(second.next == RampNext::ramp);
  CHECK(second.rate == Approx(32 * kRampPacket / 0.010));
  CHECK(start.round(3, second.rate).next == RampNext::cruise);
}

TEST_CASE("a train that met no limit is followed by faster and faster round trips, up to what is allowed") {
  Start start;
  start.most = 2e8;
  const auto first = start.train(1ms);
  REQUIRE(first.next == RampNext::ramp);
  CHECK(first.capacity == 0);
  double rate = first.rate;
  std::uint64_t round = 2;
  for (; start.round(round, rate).next == RampNext::ramp; ++round) {
    CHECK(start.line <= 2e8);
    CHECK(start.line > rate);
    rate = start.line;
  }
  CHECK(rate == Approx(2e8));
}

TEST_CASE("much loss that was not there at a lower rate ends the ramp at what arrived") {
  Start start;
  const auto first = start.train(1ms);
  start.round(2, first.rate);
  const auto step = start.round(3, start.line, 0.6);
  CHECK(step.next == RampNext::search);
  CHECK(step.rate < 0.5 * start.line);
}

TEST_CASE("too little to send tells nothing") {
  Start start;
  RateSample sample{.now = TimePoint(1h), .round = 1};
  CHECK(start.ramp.on_train(sample, start.around()).next == RampNext::stay);
  sample.delivery =
      DeliveryRate{.dispatched_bytes = 5 * kRampPacket, .interval = 1ms, .arrival_interval = 1ms};
  CHECK(start.ramp.on_train(sample, start.around()).next == RampNext::stay);
}
