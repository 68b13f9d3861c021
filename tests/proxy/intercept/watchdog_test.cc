// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/watchdog.h"

#include <atomic>
#include <boost/asio.hpp>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

using namespace longhaul::intercept;
using namespace std::chrono_literals;

namespace {

struct Watched {
  StandstillClock::TimePoint now{};
  StandstillClock clock{100ms, 1s, now};
  bool look_after(StandstillClock::Duration gap, std::uint64_t beats) {
    return clock.look(now += gap, {.beats = beats});
  }
  // The loop wants to run, and has run for `ran` of the gap.
  bool look_after(StandstillClock::Duration gap, StandstillClock::Duration ran) {
    return clock.look(now += gap, {.beats = 1, .on_cpu = on_cpu += ran, .is_runnable = true});
  }
  StandstillClock::Duration on_cpu{0};
};

}  // namespace

TEST_CASE("a running loop is never reported as stalled") {
  Watched watched;
  for (std::uint64_t beat = 1; beat < 1000; ++beat) CHECK_FALSE(watched.look_after(100ms, beat));
}

TEST_CASE("a stalled loop is detected after a second") {
  Watched watched;
  CHECK_FALSE(watched.look_after(100ms, 1));
  for (int i = 0; i < 9; ++i) CHECK_FALSE(watched.look_after(100ms, 1));
  CHECK(watched.look_after(100ms, 1));
}

TEST_CASE("time in which the watchdog itself did not run does not count as a stall") {
  Watched watched;
  CHECK_FALSE(watched.look_after(100ms, 1));
  CHECK_FALSE(watched.look_after(8h, 1));  // suspended, or stopped by a debugger
  CHECK_FALSE(watched.look_after(100ms, 2));
  for (int i = 0; i < 4; ++i) CHECK_FALSE(watched.look_after(5s, 2));  // hardly any CPU for either
}

TEST_CASE("a loop that waits for a CPU is not blocked, one that computes for a second is") {
  Watched starved, computing, sharing;
  for (Watched* each : {&starved, &computing, &sharing}) CHECK_FALSE(each->look_after(100ms, 0ms));
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(starved.look_after(100ms, 900us));
  for (int i = 0; i < 9; ++i) CHECK_FALSE(computing.look_after(100ms, 100ms));
  CHECK(computing.look_after(100ms, 100ms));
  for (int i = 0; i < 39; ++i) CHECK_FALSE(sharing.look_after(100ms, 25ms));
  CHECK(sharing.look_after(100ms, 25ms));
}

TEST_CASE("a computing loop triggers the watchdog, too") {
  boost::asio::io_context io;
  std::atomic<bool> fired = false;
  const Watchdog watchdog(io, [&] { fired = true; });
  while (!fired) {
  }
  CHECK(fired);
}

TEST_CASE("a blocked loop triggers the watchdog, a running loop does not") {
  boost::asio::io_context io;
  std::promise<void> fired;
  auto firing = fired.get_future();
  const Watchdog watchdog(io, [&] { fired.set_value(); });
  boost::asio::steady_timer end(io, 1500ms);
  end.async_wait([](boost::system::error_code) {});
  const auto guard = boost::asio::make_work_guard(io);
  io.run_until(std::chrono::steady_clock::now() + 1500ms);
  CHECK(firing.wait_for(0s) == std::future_status::timeout);
  // From here on the loop does not run.
  CHECK(firing.wait_for(60s) == std::future_status::ready);  // a busy machine gives both little time
}
