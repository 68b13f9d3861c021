// SPDX-License-Identifier: Apache-2.0
// Round trips, their window of the least and greatest, and how much later packets come than their successors.
#include "proxy/link/udp/rtt_estimator.h"

#include <catch2/catch.hpp>
#include <deque>
#include <random>

#include "proxy/link/udp/reordering.h"
#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("the first sample is taken as it is, later ones are smoothed") {
  RttEstimator rtt;
  CHECK_FALSE(rtt.measured());
  CHECK(rtt.smoothed() == RttEstimator::kInitial);
  rtt.on_sample(100ms, 20ms, kStart);
  CHECK(rtt.smoothed() == 100ms);
  CHECK(rtt.variation() == 50ms);
  rtt.on_sample(200ms, 20ms, kStart + 1s);  // 20 ms of it was the receiver's
  CHECK(rtt.latest() == 180ms);
  CHECK(rtt.smoothed() == 110ms);
  CHECK(rtt.variation() == 57500us);
  CHECK(rtt.minimum() == 100ms);
}

TEST_CASE("a queue that stands for half a minute only raises the recent minimum") {
  RttEstimator rtt;
  rtt.on_sample(1ms, 0ms, kStart);
  for (auto at = 0s; at <= 30s; at += 1s) rtt.on_sample(60ms, 0ms, kStart + at);
  CHECK(rtt.minimum() == 60ms);
  CHECK(rtt.lasting_minimum() == 1ms);
  for (auto at = 31s; at <= 120s; at += 1s) rtt.on_sample(60ms, 0ms, kStart + at);
  CHECK(rtt.lasting_minimum() == 60ms);
}

TEST_CASE("a receiver that claims delays does not make the round trip shorter than it is") {
  RttEstimator rtt;
  for (int i = 0; i < 100; ++i) rtt.on_sample(100ms, i % 2 ? 99ms : 10s, kStart + i * 10ms);
  CHECK(rtt.minimum() == 100ms);
  CHECK(rtt.smoothed() == 100ms);
  rtt.on_sample(-5ms, 0ms, kStart + 2s);
  CHECK(rtt.minimum() == 100ms);
}

TEST_CASE("the minimum over a window matches a full list, to a part of the window") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random{seed};
  WindowedMinimum<int> windowed{1s};
  std::deque<std::pair<TimePoint, int>> all;
  TimePoint now = kStart;
  const auto least_since = [&](TimePoint from) {
    int least = 1 << 30;
    for (const auto& [at, value] : all)
      if (at >= from) least = std::min(least, value);
    return least;
  };
  for (int i = 0; i < 20'000; ++i) {
    now += std::chrono::microseconds(random() % 2000);
    const int value = static_cast<int>(random() % 1000) + (i % 3000);
    all.emplace_back(now, value);
    while (all.front().first < now - 2s) all.pop_front();
    windowed.add(now, value);
    REQUIRE(*windowed.value() >= least_since(now - 1s - 35ms));
    REQUIRE(*windowed.value() <= least_since(now - 1s + 70ms));
  }
}

TEST_CASE("the tolerance for reordering grows when it is seen, and expires later") {
  Reordering reordering;
  CHECK(reordering.window(kStart, 50ms) == 0ms);
  reordering.on_late(kStart, 4ms, 50ms);
  reordering.on_late(kStart + 1s, 2ms, 50ms);
  CHECK(reordering.window(kStart + 2s, 50ms) == 5500us);
  CHECK(reordering.window(kStart + 12s, 50ms) == 0ms);
  reordering.on_late(kStart + 13s, 1h, 50ms);  // bounded by the round trip
  CHECK(reordering.window(kStart + 13s, 50ms) < 64ms);
}
