// SPDX-License-Identifier: Apache-2.0
// Detects overdue acknowledgements on a path that works: the sooner, the sooner another path can take over.
// path_health.h decides when the path has failed.
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

  // `watched`: other paths can take over, so deadlines are needed.
  void set_watched(bool watched) { watched_ = watched; }
  // To be called after packets were sent or acknowledged.
  void note(bool answered, TimePoint now);
  void forget() { unanswered_since_.reset(); }
  // This process did not run for so long.
  void leave_out(Duration stall, TimePoint now) {
    if (unanswered_since_) unanswered_since_ = std::min(*unanswered_since_ + stall, now);
  }

  // The oldest packet in flight should have been acknowledged, but nothing was for as long as an ACK may be
  // delayed. Perhaps the line only stalls for a moment, so only copies are sent on another path.
  bool is_doubtful(TimePoint now) const;
  // An acknowledgement is overdue: a packet was lost, or the path has failed. The probe timer is no
  // indication: it expires sooner if an immediate acknowledgement was requested.
  bool is_late(TimePoint now) const { return waits(late_after(), now); }
  // The probes sent for that reason were not acknowledged either: the path has failed.
  bool is_silent(TimePoint now) const { return waits(silent_after(), now); }

  // The next time after `last` at which one of these may become true.
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
  std::optional<TimePoint> unanswered_since_;  // packets are in flight, and none was acknowledged since
};

}  // namespace longhaul::link::udp
