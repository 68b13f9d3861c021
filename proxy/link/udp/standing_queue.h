// SPDX-License-Identifier: Apache-2.0
// How MeasuredLaw judges a persistent queue: the line's rate meanwhile, whether a stall of the line caused
// the queue, and how often the law has backed off because of it. The law does the sending.
#pragma once
#include <optional>

#include "proxy/link/udp/busy_rate.h"
#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class StandingQueue {
 public:
  // `stands`: the queue is longer than the law's own.
  void on_sample(const RateSample& sample, bool stands) { busy_.on_sample(sample, stands); }

  // The rate at which the line delivers our packets while the queue persists. `harmless`: share of losses
  // that do not depend on the rate.
  std::optional<double> busy_rate(double harmless) const;
  // The queue appeared at once: those of other senders grow gradually.
  bool came_at_once(const LineWatch& watch) const { return busy_.jump() > watch.queue() / 2; }
  // A queue caused by a stall disappears by draining. A queue that returns again and again is caused by
  // bursts of other traffic. `span`: the law's unit of time.
  bool believes_standstills(TimePoint now, Duration span);
  void on_standstill() { ++standstills_; }

  // ---- The mean over the last spans.
  void watch_mean(TimePoint now, Duration queue, Duration span);
  void forget_mean(TimePoint now);
  bool persists(TimePoint now, Duration limit, Duration span) const {
    return now - mean_since_ > 8 * span && mean_ > seconds(limit);
  }

  // ---- Backing off. A persistent queue may be our own, because the line has become slower, or caused by
  // similar senders that have not settled yet. If it returns each time, the line varies, or other
  // traffic fills its queue.
  bool may_give_way(TimePoint now, Duration span);
  void on_gave_way(TimePoint now) {
    ++gave_way_;
    gave_way_at_ = now;
  }
  void forget_giving_way() { gave_way_ = 0; }
  // A queue that returns soon is not answered in this way.
  void give_way_no_more(TimePoint now) {
    gave_way_ = kGiveWay;
    gave_way_at_ = now;
  }

 private:
  static constexpr int kGaveWayFor = 40;       // spans for which backing off is remembered
  static constexpr unsigned kGiveWay = 2;      // times to back off before the law follows or competes
  static constexpr unsigned kStandstills = 8;  // that count as stalls, in the same time

  BusyRate busy_;
  double mean_ = 0;  // seconds
  TimePoint mean_since_{}, mean_at_{};
  unsigned gave_way_ = 0;  // times in quick succession
  TimePoint gave_way_at_{};
  unsigned standstills_ = 0;
  TimePoint standstills_since_{};
};

}  // namespace longhaul::link::udp
