// SPDX-License-Identifier: Apache-2.0
// Changes of the line's settings at given times, read from a file, for the emulator and the simulator alike.
// Leaves clocks and the line itself to them.
#pragma once
#include <string>
#include <vector>

#include "tools/wan/settings.h"
#include "tools/wan/units.h"

namespace longhaul::wan {

struct Schedule {
  struct Step {
    Duration at{};                         // since the schedule began, or began again
    std::vector<std::string> assignments;  // NAME=VALUE, valid
  };
  std::vector<Step> steps;         // in the order of their times
  std::optional<Duration> repeat;  // begins again after that time

  // Of the whole, if it is repeated or not.
  Duration length() const { return repeat ? *repeat : steps.empty() ? Duration{0} : steps.back().at; }
};

// The text of a file; an error names the line. The format is described in README.md.
Parsed<Schedule> parse_schedule(std::string_view text);

// Plays a schedule from a moment on.
class SchedulePlayer {
 public:
  SchedulePlayer(Schedule schedule, TimePoint start) : schedule_(std::move(schedule)), start_(start) {}
  // Of the next step; none: it has ended.
  std::optional<TimePoint> next() const;
  // Applies what is due by `now`; true: something was.
  bool apply_due(LineSettings& settings, TimePoint now);

 private:
  Schedule schedule_;
  TimePoint start_;
  std::size_t step_ = 0;
};

}  // namespace longhaul::wan
