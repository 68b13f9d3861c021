// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/scheduler.h"

#include <catch2/catch.hpp>
#include <map>

#include "numbers.h"

using namespace longhaul::link;
using namespace std::chrono_literals;

TEST_CASE("interactive streams go first, and the streams of a class take turns") {
  Scheduler scheduler;
  CHECK(scheduler.empty());
  CHECK_FALSE(scheduler.take());
  scheduler.add(1_stream, StreamClass::bulk);
  scheduler.add(3_stream, StreamClass::interactive);
  scheduler.add(5_stream, StreamClass::bulk);
  scheduler.add(7_stream, StreamClass::interactive);
  std::vector<StreamId> order;
  while (auto id = scheduler.take()) order.push_back(*id);
  CHECK(order == std::vector<StreamId>{3_stream, 7_stream, 1_stream, 5_stream});
  CHECK(scheduler.empty());
}

TEST_CASE("streams that return after each turn get the same number of turns") {
  Scheduler scheduler;
  for (StreamId id = 0_stream; id < 10_stream; ++id) scheduler.add(id, StreamClass::bulk);
  std::map<StreamId, int> turns;
  for (int i = 0; i < 1000; ++i) {
    StreamId id = *scheduler.take();
    ++turns[id];
    scheduler.add(id, StreamClass::bulk);
  }
  for (auto [id, count] : turns) CHECK(count == 100);
}

TEST_CASE("a transfer becomes bulk after its first packets and interactive again after a pause") {
  TrafficMeter meter;
  TimePoint now{std::chrono::hours(1)};
  CHECK(meter.classify(0, now) == StreamClass::interactive);
  CHECK(meter.classify(32 * 1024, now) == StreamClass::interactive);
  CHECK(meter.classify(33 * 1024, now) == StreamClass::bulk);
  for (int i = 0; i < 40; ++i) meter.on_sent(1400, now += 1ms);
  CHECK(meter.classify(1400, now) == StreamClass::bulk);
  CHECK(meter.classify(1400, now + 1s) == StreamClass::interactive);
}

TEST_CASE("a stream of keystrokes stays interactive") {
  TrafficMeter meter;
  TimePoint now{std::chrono::hours(1)};
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE(meter.classify(200, now) == StreamClass::interactive);
    meter.on_sent(200, now += 30ms);
  }
}

TEST_CASE("carriers of different policies take their streams from one order") {
  using longhaul::config::PathPolicy;
  Scheduler scheduler;
  Lanes first, others;
  first.add(PathPolicy::failover);
  others.add(PathPolicy::sum);
  others.add(PathPolicy::best);
  scheduler.add(1_stream, StreamClass::bulk, PathPolicy::sum);
  scheduler.add(3_stream, StreamClass::bulk, PathPolicy::failover);
  scheduler.add(5_stream, StreamClass::bulk, PathPolicy::best);
  scheduler.add(7_stream, StreamClass::interactive, PathPolicy::failover);
  scheduler.add_first(9_stream, StreamClass::bulk, PathPolicy::best);
  CHECK(scheduler.next(others) == std::optional(9_stream));
  CHECK(scheduler.interactive_next(first));
  CHECK_FALSE(scheduler.interactive_next(others));
  CHECK(scheduler.take(first) == std::optional(7_stream));
  // One carrier for all of them keeps the order in which they came.
  std::vector<StreamId> order;
  while (auto id = scheduler.take()) order.push_back(*id);
  CHECK(order == std::vector<StreamId>{9_stream, 1_stream, 3_stream, 5_stream});
}

TEST_CASE("only streams of the policy sum are there for helpers") {
  using longhaul::config::PathPolicy;
  Scheduler scheduler;
  scheduler.add(1_stream, StreamClass::bulk, PathPolicy::best);
  CHECK_FALSE(scheduler.bulk_at(0));
  scheduler.add(3_stream, StreamClass::bulk, PathPolicy::sum);
  REQUIRE(scheduler.bulk_at(0) == std::optional(3_stream));
  scheduler.take_bulk(0);
  CHECK_FALSE(scheduler.bulk_at(0));
  CHECK(scheduler.take() == std::optional(1_stream));
}
