// SPDX-License-Identifier: Apache-2.0
// The emulator at run time: two ports, two directions, one loop that waits for frames, due times, commands
// and the end. Leaves the commands' transport to control.h.
#pragma once
#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "tools/wan/clock.h"
#include "tools/wan/direction.h"
#include "tools/wan/schedule.h"

namespace longhaul::wan {

class ControlServer;

class Forwarder {
 public:
  Forwarder(std::unique_ptr<Port> a, std::unique_ptr<Port> b, const LineSettings& settings);

  // From now on, beside `set`.
  void play(Schedule schedule) { player_.emplace(std::move(schedule), clock_now()); }

  // Until SIGINT or SIGTERM, which the caller has blocked. Throws std::runtime_error when an interface
  // disappears. `control` may be null.
  void run(ControlServer* control);

  // One line in, one line of JSON out: "stats", "stats reset", "set NAME=VALUE…" (all of them or none), or
  // "lose a-to-b=N b-to-a=N" (either or both).
  std::string execute(std::string_view command);
  boost::json::object stats();

 private:
  std::string set(std::string_view assignments);
  LineConfig use(const LineSettings& settings);
  std::string lose(std::string_view assignments);
  void reset_counters();

  std::unique_ptr<Port> a_;
  std::unique_ptr<Port> b_;
  LineSettings settings_;
  std::optional<SchedulePlayer> player_;
  Direction a_to_b_;
  Direction b_to_a_;
  TimePoint counting_since_;
  double cpu_seconds_before_ = 0;  // when counting began
};

}  // namespace longhaul::wan
