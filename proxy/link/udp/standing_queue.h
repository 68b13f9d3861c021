// SPDX-License-Identifier: Apache-2.0
// What a law that measures makes of a queue: the rate of the line while it stands, whether the line made it
// by standing still, and how often the law has given way to it. Sending is left to the law.
#pragma once
#include <optional>

#include "proxy/link/udp/busy_rate.h"
#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class StandingQueue {
 public:
  // `stands`: there is more queue than the law leaves itself.
  void on_sample(const RateSample& sample, bool stands) { busy_.on_sample(sample, stands); }

  // The rate at which the line takes our packets while the queue stands. `harmless`: share of losses that do
  // not depend on the rate.
  std::optional<double> busy_rate(double harmless) const;
  // The queue arrived at once: other senders make theirs by and by.
  bool came_at_once(const LineWatch& watch) const { return busy_.jump() > watch.queue() / 2; }
  // A queue left by a stall disappears by draining. A queue that returns again and again comes from other
  // traffic in bursts. `span`: the law's unit of time.
  bool believes_standstills(TimePoint now, Duration span);
  void on_standstill() { ++standstills_; }

  // ---- The mean over the last spans.
  void watch_mean(TimePoint now, Duration queue, Duration span);
  void forget_mean(TimePoint now);
  bool persists(TimePoint now, Duration limit, Duration span) const {
    return now - mean_since_ > 8 * span && mean_ > seconds(limit);
  }

  // ---- Giving way. A persistent queue may be our own, because the line has become slower, or that of
  // similar senders that have not settled yet. If it returns each time after backing off, it is neither.
  bool may_give_way(TimePoint now, Duration span);
  void on_gave_way(TimePoint now) {
    ++gave_way_;
    gave_way_at_ = now;
  }
  void forget_giving_way() { gave_way_ = 0; }

 private:
  static constexpr int kGaveWayFor = 40;       // spans in which giving way is remembered
  static constexpr unsigned kGiveWay = 2;      // times to a queue that stands, before the law competes
  static constexpr unsigned kStandstills = 8;  // that are believed, in the same time

  BusyRate busy_;
  double mean_ = 0;  // seconds
  TimePoint mean_since_{}, mean_at_{};
  unsigned gave_way_ = 0;  // times one soon after the other
  TimePoint gave_way_at_{};
  unsigned standstills_ = 0;
  TimePoint standstills_since_{};
};

}  // namespace longhaul::link::udp
