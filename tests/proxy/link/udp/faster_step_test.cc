// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/faster_step.h"

#include <catch2/catch.hpp>

using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("a faster step is judged by its own packets, and by the first one behind them") {
  FasterStep step;
  step.begin(7, 100'000, 120'000, 0.001);
  CHECK(step.size() == Approx(0.2));
  const auto sample = [](std::uint16_t epoch) { return RateSample{.sent_epoch = epoch}; };
  step.on_measured(sample(6), 500'000, 0.1);
  CHECK(step.best() == 0);
  CHECK_FALSE(step.queue_at_answer());
  step.on_measured(sample(7), 110'000, 0.002);
  step.on_measured(sample(7), 105'000, 0.003);
  CHECK(step.rise() == Approx(0.1));
  CHECK(step.queue_at_answer() == 0.002);
  CHECK_FALSE(step.answered());
  CHECK(step.queue_after(0.009) == 0.009);
  step.on_measured(sample(8), 120'000, 0.004);
  step.on_measured(sample(8), 120'000, 0.005);
  CHECK(step.answered());
  CHECK(step.queue_after(0.009) == 0.004);
  CHECK(step.rise() == Approx(0.1));
  // The next step knows nothing of this one.
  step.begin(8, 100'000, 120'000, 0);
  CHECK(step.best() == 0);
  CHECK_FALSE(step.answered());
}

TEST_CASE("of the pieces of a client that waits, the longest counts") {
  FasterStep step;
  step.begin(3, 100'000, 120'000, 0);
  RateSample sample{.sent_epoch = 3};
  const auto piece = [&](std::uint64_t bytes, bool limited = false) {
    sample.beginning = DeliveryRate{.delivered_bytes = bytes,
                                    .dispatched_bytes = bytes,
                                    .interval = 10ms,
                                    .application_limited = limited};
    if (!step.is_longer_piece(sample, 10'000)) return false;
    step.on_piece(bytes, static_cast<double>(bytes) * 100);
    return true;
  };
  CHECK_FALSE(piece(5000));
  CHECK_FALSE(piece(50'000, true));
  CHECK(piece(20'000));
  CHECK_FALSE(piece(20'000));
  CHECK(piece(30'000));
  CHECK(step.piece_rate() == 3'000'000);
  sample.sent_epoch = 4;
  CHECK_FALSE(piece(60'000));
}
