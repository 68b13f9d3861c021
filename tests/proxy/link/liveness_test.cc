// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/liveness.h"

#include <catch2/catch.hpp>
#include <deque>

#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace std::chrono_literals;

namespace {

// A path of a fixed round trip that answers every ping, in steps of a millisecond.
struct Path {
  explicit Path(Duration rtt_, Duration handshake) : rtt(rtt_) { liveness.start(now, handshake); }
  void run(Duration time, bool busy) {
    for (TimePoint end = now + time; now < end; now += 1ms) {
      while (!pongs.empty() && pongs.front().first <= now) {
        liveness.on_heard(now);
        liveness.on_pong(pongs.front().second, now);
        pongs.pop_front();
      }
      liveness.on_timeout(now, busy);
      if (liveness.ping_due()) {
        ++pings;
        std::uint64_t number = liveness.make_ping(now);
        if (answers) pongs.emplace_back(now + rtt, number);
      }
      if (liveness.silent(now, busy) && !silent_at) silent_at = now;
    }
  }
  Duration rtt;
  TimePoint now = kStart;
  Liveness liveness;
  std::deque<std::pair<TimePoint, std::uint64_t>> pongs;
  bool answers = true;
  int pings = 0;
  std::optional<TimePoint> silent_at;
};

bool near(Duration measured, Duration expected) {
  return measured > expected * 9 / 10 && measured < expected * 11 / 10 + 2ms;
}

}  // namespace

TEST_CASE("the round trip is measured whatever its length, even if pings overtake answers") {
  for (Duration rtt : {1ms, 30ms, 250ms, 600ms, 1500ms, 4000ms})
    for (bool busy : {false, true}) {
      Path path(rtt, 10ms);  // the handshake saw another path
      path.run(120s, busy);
      INFO(rtt / 1ms << " ms, busy " << busy);
      CHECK(near(path.liveness.smoothed_rtt(), rtt));
    }
}

TEST_CASE("a path that answers is never declared silent once its round trip is known") {
  for (Duration rtt : {1ms, 250ms, 900ms})
    for (bool busy : {false, true}) {
      Path path(rtt, rtt);
      path.run(60s, busy);
      CHECK_FALSE(path.silent_at);
    }
}

TEST_CASE("silence is detected within the promised time") {
  struct Case {
    Duration rtt;
    bool busy;
    Duration most;
  };
  for (auto [rtt, busy, most] :
       {Case{30ms, true, 1300ms}, Case{30ms, false, 3050ms}, Case{600ms, true, 600ms * 4 + 1s}}) {
    Path path(rtt, rtt);
    path.run(10s, busy);
    TimePoint stopped = path.now;
    path.answers = false;
    path.pongs.clear();
    path.run(10s, busy);
    REQUIRE(path.silent_at);
    CHECK(*path.silent_at - stopped <= most);
    CHECK(*path.silent_at - stopped >= 990ms);
  }
}

TEST_CASE("an answer is overdue long before silence, and never on a path that answers") {
  for (Duration rtt : {1ms, 30ms, 600ms})
    for (bool busy : {false, true}) {
      INFO(rtt / 1ms << " ms, busy " << busy);
      Path path(rtt, rtt);
      for (int i = 0; i < 10'000; ++i) {
        path.run(1ms, busy);
        REQUIRE_FALSE(path.liveness.overdue(path.now));
      }
      const TimePoint stopped = path.now;
      path.answers = false;
      path.pongs.clear();
      while (!path.liveness.overdue(path.now)) path.run(1ms, busy);
      // The ping that is due next, its round trip, and a little.
      CHECK(path.now - stopped <= 1s + rtt * 3 / 2 + 60ms);
      CHECK_FALSE(path.silent_at);
      path.liveness.on_heard(path.now);
      CHECK_FALSE(path.liveness.overdue(path.now));
    }
}

TEST_CASE(
    "with open flows the last confirmation is newer than a second and a round trip, despite a lost ping") {
  for (Duration rtt : {1ms, 30ms, 600ms, 1500ms}) {
    INFO(rtt / 1ms << " ms");
    Path path(rtt, rtt);
    path.run(10s, true);
    for (int i = 0; i < 20'000; ++i) {
      path.run(1ms, true);
      // Of pings that follow one another no two are lost.
      if (i % 3000 == 2999 && !path.pongs.empty()) path.pongs.pop_back();
      REQUIRE(path.now - path.liveness.contact().confirmed < 1s + rtt);
    }
  }
}

TEST_CASE("an idle path sends one ping per second") {
  Path path(30ms, 30ms);
  path.run(60s, false);
  CHECK(path.pings <= 62);
}

TEST_CASE("after a timeout the deadline is never in the past, whether a ping could be sent or not") {
  Liveness liveness;
  liveness.start(kStart, 30ms);
  for (TimePoint now = kStart; now < kStart + 20s;) {
    bool silent = liveness.silent(now, true);
    liveness.on_timeout(now, true);
    auto next = liveness.next_timeout(true, silent || liveness.silent(now, true));
    REQUIRE(next);
    REQUIRE(*next > now);
    now = *next;
  }
}

TEST_CASE("answers to unsent or already answered pings are ignored") {
  Liveness liveness;
  liveness.start(kStart, 30ms);
  std::uint64_t number = liveness.make_ping(kStart);
  liveness.on_pong(0, kStart + 9s);
  liveness.on_pong(number + 1, kStart + 9s);
  liveness.on_pong(~0ull, kStart + 9s);
  CHECK(liveness.smoothed_rtt() == 30ms);
  liveness.on_pong(number, kStart + 30ms);
  liveness.on_pong(number, kStart + 9s);
  CHECK(liveness.smoothed_rtt() == 30ms);
}

TEST_CASE("contact lasts while round trips are completed, and restarts after a gap") {
  Path path(100ms, 100ms);
  const Contact first = path.liveness.contact();
  CHECK(first.confirmed == kStart - 100ms);  // what the handshake was told by
  path.run(60s, false);
  const Contact& contact = path.liveness.contact();
  CHECK(contact.since == first.since);
  CHECK(path.now - contact.confirmed < 1300ms);
  CHECK(path.now - contact.heard < 1200ms);
  CHECK(contact.confirmed + 100ms <= contact.heard);
  path.answers = false;
  path.run(9s, false);
  path.answers = true;
  path.run(3s, false);
  CHECK(contact.since != first.since);  // the last round trip before it began more than kApart ago
  const TimePoint again = contact.since;
  CHECK(again > kStart + 69s);
  path.run(30s, true);
  CHECK(contact.since == again);
}

TEST_CASE("only the answer to the latest question counts, and it measures nothing") {
  Liveness liveness;
  liveness.start(kStart, 30ms);
  const auto ask = [&] {
    longhaul::Buffer out;
    liveness.questions().ask(out);
    return std::get<PingFrame>(*(*parse_frame(out))->frame).number;
  };
  CHECK_FALSE(liveness.questions().answered());
  const std::uint64_t first = ask();
  const std::uint64_t ping = liveness.make_ping(kStart);
  const std::uint64_t second = ask();
  CHECK(first != second);
  liveness.on_pong(ping, kStart + 30ms);
  liveness.on_pong(first, kStart + 5s);
  CHECK_FALSE(liveness.questions().answered());
  liveness.on_pong(second, kStart + 5s);
  CHECK(liveness.questions().answered());
  CHECK(liveness.smoothed_rtt() == 30ms);
  ask();
  CHECK_FALSE(liveness.questions().answered());
  liveness.on_pong(~std::uint64_t{0} >> 2, kStart + 5s);  // the largest of the wire
  CHECK_FALSE(liveness.questions().answered());
}

TEST_CASE("time in which this process did not run is no silence of the peer") {
  for (const bool leaves_out : {true, false}) {
    Path path(30ms, 30ms);
    path.run(10s, true);
    path.answers = false;
    path.pongs.clear();
    path.run(300ms, true);
    const TimePoint stopped = path.now;
    path.now += 2s;
    if (leaves_out) path.liveness.leave_out(2s, path.now);
    path.run(500ms, true);
    CHECK(path.silent_at.has_value() == !leaves_out);
    path.run(1s, true);
    CHECK(path.silent_at);
    CHECK((leaves_out ? *path.silent_at - stopped > 2500ms : *path.silent_at - stopped < 2100ms));
  }
}
