// SPDX-License-Identifier: Apache-2.0
// Virtual time: which timer fires next, and what is to happen at a given moment. Leaves what a timer does to
// its owner; nothing here reads a clock.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tools/wan/link.h"

namespace longhaul::simulator {

using Duration = wan::Duration;
using TimePoint = wan::TimePoint;

class Timeline;

// Something with one deadline. Timers that are due at the same moment fire in the order they were made.
class Timer {
 public:
  explicit Timer(Timeline& timeline);
  virtual ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual void fire(TimePoint now) = 0;

 protected:
  Timeline& timeline() const { return timeline_; }

 private:
  friend class Timeline;
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  Timeline& timeline_;
  std::uint64_t order_;
  TimePoint at_{};
  std::size_t place_ = kNowhere;  // in the heap
};

class Timeline {
 public:
  TimePoint now() const { return now_; }

  // The timer fires once at that moment (now, if it has passed); without one it does not.
  void set(Timer& timer, std::optional<TimePoint> at);

  // Before everything else that is due at that moment, in the order of the calls.
  void at(TimePoint when, std::function<void()> action);
  void after(Duration delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }
  // From now + `period` on, for as long as time runs.
  void every(Duration period, std::function<void()> action);

  void run_until(TimePoint end);
  void run_for(Duration time) { run_until(now_ + time); }
  // Answers whether `done` became true in time; it is asked once in each `step` of virtual time.
  bool run_until(const std::function<bool()>& done, Duration patience,
                 Duration step = std::chrono::milliseconds(1));

  std::uint64_t events() const { return events_; }

 private:
  friend class Timer;
  static bool before(const Timer& a, const Timer& b) {
    return a.at_ != b.at_ ? a.at_ < b.at_ : a.order_ < b.order_;
  }
  void sift_up(std::size_t place);
  void sift_down(std::size_t place);
  void remove(Timer& timer);
  bool advance(TimePoint end);  // one action or timer that is due by `end`
  std::optional<TimePoint> next() const;

  // Not zero, so that "a while ago" can be said before the first second is over.
  TimePoint now_{std::chrono::hours(1)};
  std::uint64_t timers_made_ = 0;
  std::uint64_t events_ = 0;
  std::vector<Timer*> heap_;
  std::multimap<TimePoint, std::function<void()>> actions_;
};

}  // namespace longhaul::simulator
