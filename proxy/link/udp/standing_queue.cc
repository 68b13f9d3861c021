// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/standing_queue.h"

#include <algorithm>
#include <cmath>

namespace longhaul::link::udp {

std::optional<double> StandingQueue::busy_rate(double harmless) const {
  if (!busy_.value()) return std::nullopt;
  return *busy_.value() / (1 - std::min(harmless, 0.6));
}

bool StandingQueue::believes_standstills(TimePoint now, Duration span) {
  if (now - standstills_since_ > kGaveWayFor * span) {
    standstills_since_ = now;
    standstills_ = 0;
  }
  return standstills_ != kStandstills;
}

void StandingQueue::watch_mean(TimePoint now, Duration queue, Duration span) {
  if (mean_at_ == TimePoint{}) mean_at_ = mean_since_ = now;
  const double share = 1 - std::exp(-seconds(now - mean_at_) / (5 * seconds(span)));
  mean_ += share * (seconds(queue) - mean_);
  mean_at_ = now;
}

void StandingQueue::forget_mean(TimePoint now) {
  mean_ = 0;
  mean_since_ = mean_at_ = now;
}

bool StandingQueue::may_give_way(TimePoint now, Duration span) {
  if (now - gave_way_at_ > kGaveWayFor * span) gave_way_ = 0;
  return gave_way_ < kGiveWay;
}

}  // namespace longhaul::link::udp
