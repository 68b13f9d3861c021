// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as something that every wait sees: thrown out of long work, or asked for between two steps. Leaves
// what is kept of an interrupted run to the tools.
#pragma once
#include <poll.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <span>

#include "tools/wan/descriptor.h"

namespace longhaul::measuring {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// Thrown by whatever waits or sends once a stop was requested. Not an error: a run's result ends here.
struct Interrupted {};

class Stop {
 public:
  Stop();
  ~Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  void request() noexcept;  // from any thread, or a signal handler
  bool is_requested() const { return requested_.load(std::memory_order_relaxed); }
  void check() const {
    if (is_requested()) throw Interrupted{};
  }
  int descriptor() const { return event_.get(); }  // readable from the request on

 private:
  wan::Descriptor event_;
  std::atomic<bool> requested_ = false;
};

// SIGINT and SIGTERM request it, from now on and as long as it lives; it must outlive the program's other
// threads.
void stop_on_signals(Stop& stop);

// Waits until one of them is ready, or until the deadline (absent: for ever): false. Throws Interrupted.
bool wait(std::span<pollfd> descriptors, std::optional<TimePoint> deadline, const Stop& stop);
bool wait_readable(int descriptor, std::optional<TimePoint> deadline, const Stop& stop);
bool wait_writable(int descriptor, std::optional<TimePoint> deadline, const Stop& stop);
void sleep_until(TimePoint deadline, const Stop& stop);
// The same without a throw: returns early when a stop is requested.
void pause(Duration time, const Stop& stop);

}  // namespace longhaul::measuring
