// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/longer_path.h"

#include <catch2/catch.hpp>
#include <deque>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
// A sender at 1 MB/s on a line that carries as much at first, over 20 ms there and as much back.
struct PathSender {
  LongerPath path;
  TimePoint sent = TimePoint{} + 1h;
  std::uint64_t dispatched = 0;
  Duration way = 20ms, queue{0};
  bool drains = true;         // what waits is a queue
  double carries = 1;         // of 1 MB/s
  bool knows_at_once = true;  // else what became of a packet is known a round trip later
  std::deque<RateSample> on_way{};

  bool send(std::uint64_t bytes = 1000, Duration after = 1ms) {
    const auto passed = static_cast<double>(after / 1us), takes = static_cast<double>(bytes) / carries;
    if (drains)
      queue = std::max(queue + std::chrono::microseconds(std::int64_t(takes - passed)), Duration{0});
    RateSample sample;
    sample.sent_at = sent += after;
    sample.dispatched_bytes = dispatched += bytes;
    sample.acked_bytes = bytes;
    sample.forward_delay = way + queue;
    sample.rtt = *sample.forward_delay + 20ms;
    sample.now = sent + *sample.rtt;
    on_way.push_back(sample);
    bool longer = false;
    while (!on_way.empty() && (knows_at_once || on_way.front().now <= sent)) {
      RateSample arrived = on_way.front();
      on_way.pop_front();
      for (const RateSample& other : on_way) arrived.in_flight_bytes += other.acked_bytes;
      longer |= path.on_sample(arrived, {.rate = 1e6, .capacity = 1e6, .queue = Duration{0}});
    }
    return longer;
  }
  // Sends as slowly as it is told; for so long, or until the path is found to be longer.
  bool finds_longer_path(Duration time) {
    for (const TimePoint end = sent + time; sent < end;)
      if (send(static_cast<std::uint64_t>(1000 * path.gain()))) return true;
    return false;
  }
};
}  // namespace

TEST_CASE("a path that is longer than before is found when less was sent and nothing drained") {
  PathSender sender;
  CHECK_FALSE(sender.finds_longer_path(1s));
  CHECK_FALSE(sender.path.doubts());
  sender.way = 70ms;
  CHECK_FALSE(sender.send());
  CHECK(sender.path.doubts());
  CHECK(sender.path.rise() == 50ms);
  CHECK(sender.path.gain() < 1);
  CHECK(sender.finds_longer_path(200ms));
  CHECK_FALSE(sender.path.doubts());
  CHECK(sender.path.gain() == 1);
  CHECK(sender.path.least_delay() == 70ms);
  CHECK(sender.path.least_rtt() == 90ms);
}

TEST_CASE("a path that is longer and slower is found when what was sent too fast has drained") {
  PathSender sender{.knows_at_once = false};
  CHECK_FALSE(sender.finds_longer_path(1s));
  sender.way = 70ms;
  sender.carries = 0.4;
  CHECK_FALSE(sender.finds_longer_path(120ms));
  CHECK(sender.path.doubts());
  CHECK(sender.path.gain() == Approx(0.2).margin(0.02));
  CHECK(sender.finds_longer_path(2s));
  REQUIRE(sender.path.slower_rate());
  CHECK(*sender.path.slower_rate() == Approx(4e5).epsilon(0.03));
  CHECK(sender.path.least_delay() < 80ms);
}

TEST_CASE("a line that is slower, with a queue that came at once, is no longer path") {
  PathSender sender{.knows_at_once = false};
  CHECK_FALSE(sender.finds_longer_path(1s));
  sender.queue = 60ms;
  sender.carries = 0.4;
  CHECK_FALSE(sender.finds_longer_path(110ms));
  CHECK(sender.path.doubts());
  CHECK_FALSE(sender.finds_longer_path(3s));
  CHECK_FALSE(sender.path.doubts());
}

TEST_CASE("a queue that comes at once drains when less is sent, and is no longer path") {
  PathSender sender;
  CHECK_FALSE(sender.finds_longer_path(1s));
  sender.queue = 50ms;
  CHECK_FALSE(sender.send());
  CHECK(sender.path.doubts());
  CHECK_FALSE(sender.finds_longer_path(2s));
  CHECK_FALSE(sender.path.doubts());
}

TEST_CASE("a queue that the sender makes itself is no reason for doubt") {
  PathSender sender;
  CHECK_FALSE(sender.finds_longer_path(1s));
  for (int i = 0; i < 100; ++i) {
    CHECK_FALSE(sender.send(2000));
    CHECK_FALSE(sender.path.doubts());
  }
  CHECK(sender.queue > 90ms);
}

TEST_CASE("a delay that rises on and on is a queue") {
  PathSender sender;
  CHECK_FALSE(sender.finds_longer_path(1s));
  sender.queue = 20ms;
  sender.drains = false;
  for (int i = 0; i < 200; ++i) {
    sender.queue += 2ms;
    CHECK_FALSE(sender.send(500));
  }
}

TEST_CASE("while the line's rate is not known nothing is doubted") {
  LongerPath path;
  RateSample sample;
  for (const Duration delay : {20ms, 20ms, 90ms, 90ms}) {
    sample.sent_at += 1ms;
    sample.now = sample.sent_at + delay + 20ms;
    sample.dispatched_bytes += 1000;
    sample.forward_delay = delay;
    sample.rtt = delay + 20ms;
    CHECK_FALSE(path.on_sample(sample, {}));
    CHECK_FALSE(path.doubts());
  }
}
