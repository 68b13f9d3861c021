// SPDX-License-Identifier: Apache-2.0
// Whether acknowledgements are overdue on a path that works, and how much: the sooner that is seen, the
// sooner another path can take over. path_health.h decides when the path has failed.
#pragma once
#include <algorithm>
#include <optional>

#include "proxy/link/udp/packets_in_flight.h"
#include "proxy/link/udp/path_health.h"

namespace longhaul::link::udp {

class OverdueAnswer {
 public:
  // Both outlive this object.
  OverdueAnswer(const PacketsInFlight& flight, const PathHealth& health) : flight_(flight), health_(health) {}

  // Other paths can take over: there are deadlines for what follows.
  void set_watched(bool watched) { watched_ = watched; }
  // After packets were sent or acknowledged.
  void note(bool answered, TimePoint now);
  void forget() { unanswered_since_.reset(); }
  // This process did not run for so long.
  void leave_out(Duration stall, TimePoint now) {
    if (unanswered_since_) unanswered_since_ = std::min(*unanswered_since_ + stall, now);
  }

  // The oldest packet in flight should have been acknowledged, and nothing was for as long as an ACK may
  // wait: perhaps the line only stands still for a moment, so nothing changes but that copies are sent on
  // another path.
  bool is_doubtful(TimePoint now) const;
  // An acknowledgement is overdue: a packet was lost, or the path. The timer that probes is no sign of it: it
  // runs out sooner where an acknowledgement was asked for at once.
  bool is_late(TimePoint now) const { return waits(late_after(), now); }
  // Nor were the probes acknowledged that were sent for that reason: it is the path.
  bool is_silent(TimePoint now) const { return waits(silent_after(), now); }

  // The next moment after `last` at which one of these may become true.
  std::optional<TimePoint> next_timeout(TimePoint last) const;

 private:
  bool is_up() const { return health_.state() == PathHealth::State::up; }
  Duration late_after() const;
  Duration silent_after() const;
  std::optional<TimePoint> doubtful_from() const;
  bool waits(Duration time, TimePoint now) const;

  const PacketsInFlight& flight_;
  const PathHealth& health_;
  bool watched_ = false;
  std::optional<TimePoint> unanswered_since_;  // something is in flight, and nothing was acknowledged since
};

}  // namespace longhaul::link::udp
