// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/usual_pause.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
struct PausingLine {
  UsualPause pause;
  TimePoint now = TimePoint{} + 1h;
  // A packet each 250 us; after each `moves` the line stands still for `stands`, then takes what waits at
  // once.
  void run(Duration time, Duration moves, Duration stands) {
    Duration waits{0};
    TimePoint next = now + moves;
    for (const TimePoint end = now + time; now < end; now += 250us) {
      waits = std::max(waits - 250us, Duration{0});
      if (now >= next) {
        waits = stands;
        next = now + moves + stands;
      }
      pause.add(now, 20ms + waits);
    }
  }
};
}  // namespace

TEST_CASE("a line that pauses again and again is known by the delays after each pause") {
  PausingLine line;
  line.run(10s, 5ms, 8ms);
  CHECK(line.pause.value() > 7ms);
  CHECK(line.pause.value() <= 8ms);
  line.run(10s, 1h, 0ms);
  CHECK(line.pause.value() == Duration{0});
  line.run(60s, 20ms, 60ms);
  CHECK(line.pause.value() == UsualPause::kMost);
}

TEST_CASE("single pauses, however long, and queues that grow are none of its habits") {
  PausingLine line;
  line.run(20s, 500ms, 150ms);
  CHECK(line.pause.value() < 1ms);
  line.run(5s, 4ms, 4ms);
  CHECK(line.pause.value() == Duration{0});  // that little is jitter
  for (int i = 0; i < 10'000; ++i) line.pause.add(line.now += 250us, 20ms + i * 50us);
  CHECK(line.pause.value() < 1ms);
}
