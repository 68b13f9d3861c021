// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/competition.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using Next = Competition::Next;

namespace {

constexpr std::uint32_t kPacketOfRace = 1500;
constexpr Duration kSpanOfRace = 100ms, kMuch = 20ms;

// A sender on a line with a round trip of 100 ms, beside others that keep a queue.
struct Race {
  Race() {
    see(0ms);
    competition.begin(now, watch, 0, 1'000'000, kSpanOfRace);
  }
  // An ACK that shows a queue of that length.
  double see(Duration queue, std::uint64_t acked = 15'000, std::uint64_t lost = 0) {
    RateSample sample{.now = now,
                      .acked_bytes = acked,
                      .lost_bytes = lost,
                      .in_flight_bytes = 1 << 20,
                      .rtt = 100ms + queue,
                      .forward_delay = 50ms + queue,
                      .sent_at = now - 100ms - queue,
                      .packet_bytes = kPacketOfRace,
                      .full_packet_bytes = kPacketOfRace};
    watch.on_sample(sample, {});
    return competition.on_sample(sample, watch, 0, kMuch, true);
  }
  double see_for(Duration time, Duration queue) {
    double rate = 0;
    for (const TimePoint end = now + time; now < end; now += 20ms) rate = see(queue);
    return rate;
  }

  TimePoint now = TimePoint{} + 1h;
  LineWatch watch{100ms};
  Competition competition{kPacketOfRace};
};

}  // namespace

TEST_CASE("a competing sender grows until a full queue drops, and then gives way") {
  Race race;
  const double before = race.competition.window_packets();
  race.see_for(3s, 60ms);
  CHECK(race.competition.window_packets() > before);
  const double packets = race.competition.window_packets();
  race.see(60ms, 15'000, 15'000);
  CHECK(race.competition.window_packets() < packets);
  const double after = race.competition.window_packets();
  race.see(60ms, 15'000, 15'000);  // sent before the window shrank
  CHECK(race.competition.window_packets() >= after);
}

TEST_CASE("a competing sender keeps a few packets in flight, however slow it was before") {
  Race race;
  race.competition.begin(race.now, race.watch, 0, 100, kSpanOfRace);
  CHECK(race.competition.window_packets() >= 4);
}

TEST_CASE("it competes no longer when no queue was seen for some time") {
  Race race;
  race.see_for(1s, 1ms);
  CHECK(race.competition.while_competing(race.now, race.watch, kMuch, kSpanOfRace) == Next::stay);
  race.see_for(9s, 1ms);
  CHECK(race.competition.while_competing(race.now, race.watch, kMuch, kSpanOfRace) == Next::stop);
}

TEST_CASE("now and then it sends less to see whose queue it is") {
  Race race;
  race.see_for(9s, 100ms);
  race.see_for(2s, 60ms);
  Next next = Next::stay;
  for (int i = 0; i < 2000 && next == Next::stay; ++i) {
    race.see_for(20ms, 60ms);
    next = race.competition.while_competing(race.now, race.watch, kMuch, kSpanOfRace);
  }
  REQUIRE(next == Next::look);
  const TimePoint ends = race.now + race.competition.look_time(race.watch);
  CHECK(ends > race.now + 100ms);
  SECTION("its own, because it is gone") {
    race.see_for(400ms, 1ms);
    CHECK(race.competition.while_looking(race.now, ends, race.watch, kSpanOfRace) == Next::stop);
  }
  SECTION("of others, because it stays") {
    race.see_for(100ms, 60ms);
    CHECK(race.competition.while_looking(race.now, ends, race.watch, kSpanOfRace) == Next::stay);
    race.see_for(1s, 60ms);
    CHECK(race.competition.while_looking(ends, ends, race.watch, kSpanOfRace) == Next::compete);
  }
}
