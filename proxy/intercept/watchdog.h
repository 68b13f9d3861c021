// SPDX-License-Identifier: Apache-2.0
// Ends the process when its event loop is blocked, so that the packet rules disappear and traffic bypasses
// the proxy. A supervisor restarts the daemon.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>

namespace longhaul::intercept {

// Decides whether the loop caused the time without a heartbeat. Pure. Gaps do not count if the machine was
// suspended, or the process was stopped (SIGSTOP, debugger): the watchdog did not run either. Nor does the
// time in which the loop waits for a CPU: on an overloaded host, all flows would be reset for a delay that a
// new daemon would suffer, too.
class StandstillClock {
 public:
  using Duration = std::chrono::steady_clock::duration;
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Loop {
    std::uint64_t beats = 0;   // so far
    Duration on_cpu{0};        // so far
    bool is_runnable = false;  // has a CPU or waits for one
  };
  StandstillClock(Duration tick, Duration limit, TimePoint now) : tick_(tick), limit_(limit), looked_(now) {}

  // Called about every tick. Returns true if the loop is blocked.
  bool look(TimePoint now, const Loop& loop);

 private:
  const Duration tick_;
  const Duration limit_;
  TimePoint looked_;
  std::uint64_t beats_ = 0;
  Duration on_cpu_{0};
  Duration still_{0};
};

class Watchdog {
 public:
  static constexpr std::chrono::milliseconds kTick{100};
#ifdef __SANITIZE_ADDRESS__
  static constexpr std::chrono::milliseconds kLimit{3000};  // sanitized tests are several times slower
#else
  static constexpr std::chrono::milliseconds kLimit{1000};
#endif

  // Must be created by the thread that will run the loop. `on_standstill` runs on the watchdog's thread; by
  // default it writes one line to stderr and calls _exit(70).
  explicit Watchdog(boost::asio::io_context& io, std::function<void()> on_standstill = {});
  ~Watchdog();  // destroy it before the loop ends: a loop that has ended sends no heartbeat
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace longhaul::intercept
