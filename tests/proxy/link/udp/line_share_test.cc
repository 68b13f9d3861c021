// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/line_share.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

constexpr double kShareLine = 1'000'000;
constexpr Duration kShareSpan = 100ms;

// A step a quarter faster, at which the queue has grown by `part` of what was sent too much.
FasterStep step_with(double queue_before) {
  FasterStep step;
  step.begin(1, kShareLine, 1.25 * kShareLine, queue_before);
  step.on_measured(RateSample{.sent_epoch = 1}, kShareLine, queue_before);
  return step;
}

}  // namespace

TEST_CASE("a sender's share is what the queue took of its faster steps") {
  const LineWatch watch(kShareSpan);
  LineShare share(1500, 0);
  CHECK(share.of(kShareLine) == 1);  // nothing else is known
  constexpr double kQueue = 0.01;
  const double whole = 0.25 * (seconds(kShareSpan) - seconds(watch.lag()));
  for (int i = 0; i < 100; ++i)
    REQUIRE(share.learn(step_with(kQueue), kQueue + 0.3 * whole, watch, kShareSpan, kShareLine));
  CHECK(share.of(kShareLine) == Approx(0.3).margin(0.02));
  // With less than half it moves up, with room or without, and takes larger steps to learn more.
  CHECK(share.draw_even(TimePoint{} + 1h, kShareLine, false) > kShareLine);
  CHECK(share.step_size(watch, kShareSpan) == Approx(0.25));
  // What cannot come from its own step is not learnt from.
  CHECK(share.learn(step_with(kQueue), kQueue + 5 * whole, watch, kShareSpan, kShareLine));
  CHECK(share.of(kShareLine) == Approx(0.3).margin(0.02));
  share.forget();
  CHECK(share.of(kShareLine) == 1);
}

TEST_CASE("a step that is too small to be seen teaches nothing") {
  const LineWatch watch(kShareSpan);
  LineShare share(1500, 0);
  FasterStep unanswered;
  unanswered.begin(1, kShareLine, 1.25 * kShareLine, 0);
  CHECK_FALSE(share.learn(unanswered, 0.01, watch, kShareSpan, kShareLine));
  // A packet takes 150 ms of this line.
  CHECK_FALSE(share.learn(step_with(0.01), 0.01, watch, kShareSpan, 10'000));
}

TEST_CASE("bursts are not for a sender that seems alone, and stay below the rate allowed") {
  const LineWatch watch(kShareSpan);
  LineShare share(1500, 2 * kShareLine);
  CHECK_FALSE(share.wants_burst(TimePoint{} + 1h, kShareLine, watch, 1s));
  CHECK(share.burst_rate(kShareLine) == 2 * kShareLine);
  CHECK(share.burst_rate(0.1 * kShareLine) == Approx(0.4 * kShareLine));
  CHECK(share.burst_bytes(kShareLine, watch) >= 6 * 1500);
}
