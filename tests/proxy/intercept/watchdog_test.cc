// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/watchdog.h"

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
    return clock.look(now += gap, beats);
  }
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
