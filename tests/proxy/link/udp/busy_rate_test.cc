// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/busy_rate.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
constexpr std::uint32_t kFull = 1500;

// ACKs of so many packets each, at a steady rate.
struct BusyLine {
  BusyRate busy;
  TimePoint now = TimePoint{} + 1h;
  Duration forward_delay = 20ms;
  bool application_limited = false;

  void ack(unsigned packets, Duration after, bool stands = true) {
    now += after;
    RateSample sample{.now = now,
                      .acked_bytes = packets * kFull,
                      .forward_delay = forward_delay,
                      .sent_at = now - forward_delay,
                      .packet_bytes = kFull,
                      .full_packet_bytes = kFull};
    sample.delivery = DeliveryRate{.delivered_bytes = packets * kFull,
                                   .dispatched_bytes = packets * kFull,
                                   .interval = after,
                                   .arrival_interval = after,
                                   .application_limited = application_limited};
    busy.on_sample(sample, stands);
  }
};
constexpr double kLine = 10 * kFull / 0.010;  // of ten packets in 10 ms
}  // namespace

TEST_CASE("the rate of a busy line is known after two samples, and not before") {
  BusyLine line;
  for (int i = 0; i <= 3; ++i) {
    line.ack(10, 10ms);
    CHECK_FALSE(line.busy.value());
  }
  line.ack(10, 10ms);
  REQUIRE(line.busy.value());
  CHECK(*line.busy.value() == Approx(kLine));
  line.ack(10, 10ms, false);
  CHECK_FALSE(line.busy.value());
}

TEST_CASE("on a slow line a sample lasts as long as a few packets take") {
  BusyLine line;
  for (int i = 0; i < 8; ++i) {
    line.ack(1, 25ms);
    CHECK_FALSE(line.busy.value());
  }
  line.ack(1, 25ms);
  REQUIRE(line.busy.value());
  CHECK(*line.busy.value() == Approx(kFull / 0.025));
}

TEST_CASE("a stall falls into one or two samples, and the next sample shows the rate") {
  for (const bool one_comes_through : {false, true}) {
    BusyLine line;
    for (int i = 0; i < 9; ++i) line.ack(10, 10ms);
    if (one_comes_through) {
      line.forward_delay += 90ms;
      line.ack(1, 100ms);
    }
    line.forward_delay = 170ms;
    line.ack(10, one_comes_through ? 60ms : 160ms);
    CHECK(*line.busy.value() == Approx(kLine));
    CHECK(line.busy.jump() == 150ms);
  }
}

TEST_CASE("samples in which we did not fill the line say nothing about its rate") {
  BusyLine line;
  for (int i = 0; i < 9; ++i) line.ack(10, 10ms);
  REQUIRE(line.busy.value());
  line.application_limited = true;
  for (int i = 0; i < 20; ++i) {
    line.ack(1, 10ms);
    CHECK_FALSE(line.busy.value());
  }
  line.application_limited = false;
  for (int i = 0; i < 4; ++i) line.ack(10, 10ms);
  CHECK_FALSE(line.busy.value());
  line.ack(10, 10ms);
  CHECK(*line.busy.value() == Approx(kLine));
}

TEST_CASE("a queue that grows gradually is not a jump") {
  BusyLine line;
  for (int i = 0; i < 100; ++i) {
    line.forward_delay += 1ms;
    line.ack(10, 11ms, line.forward_delay > 30ms);
  }
  CHECK(line.busy.jump() <= 2ms);
  CHECK(*line.busy.value() == Approx(10 * kFull / 0.011).epsilon(0.01));
}
