// SPDX-License-Identifier: Apache-2.0
// How MeasuredLaw interprets a queue: how much of it is its own, whether a stall of the line caused it, and
// when to let it drain or to give way.
#include <algorithm>
#include <cmath>

#include "proxy/link/udp/measured_law.h"

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr unsigned kGiveWay = 2;      // times to a queue that stands, before we compete
constexpr unsigned kStandstills = 8;  // that we accept as such, in the same time
}  // namespace

// The queue is almost empty.
bool MeasuredLaw::is_calm() const { return watch_.queue() < kQueue + 2ms + watch_.base_rtt() / 32; }

// More than our own.
Duration MeasuredLaw::queue_target() const { return 4ms + watch_.base_rtt() / 7; }

// Beyond our own excess.
Duration MeasuredLaw::queue_limit() const { return watch_.base_rtt() / 2 + 15ms; }

// Our share of the line while a queue exists, counted as in carried().
std::optional<double> MeasuredLaw::busy_rate() const {
  if (!busy_.value()) return std::nullopt;
  return *busy_.value() / (1 - std::min(harmless_loss(), 0.6));
}

// The queue did: other traffic builds one gradually.
bool MeasuredLaw::came_at_once() const { return busy_.jump() > watch_.queue() / 2; }

// The line stalled for a moment, so there is a queue; but it is as fast as before.
bool MeasuredLaw::stood_still() const {
  const auto busy = busy_rate();
  return busy && *busy > 0.97 * line_ && came_at_once();
}

// A queue left by a stall disappears by draining. A queue that returns again and again comes from other
// traffic in bursts.
bool MeasuredLaw::drain_standstill(TimePoint now) {
  if (!stood_still()) return false;
  if (now - standstills_since_ > kGaveWayFor * span()) {
    standstills_since_ = now;
    standstills_ = 0;
  }
  if (standstills_ == kStandstills) return false;
  if (now >= no_drain_before_ && phase_ != Phase::drain) {
    ++standstills_;
    begin_drain(now);
  }
  return true;
}

// All links that share the queue see the same queue and back off by the same share; once per phase, however
// short the round trip is.
void MeasuredLaw::ease(TimePoint now) {
  const Duration queue = watch_.queue();
  if (queue <= kQueue + times(span(), step_size()) || now - eased_at_ <= span() * 4 / 5) return;
  if (queue > queue_target() && came_at_once()) {
    if (!busy_rate()) return;  // soon it will be known
    if (drain_standstill(now)) return;
  }
  eased_at_ = now;
  set_line(line_ * (1 - std::min(0.1, 0.25 * seconds(queue - kQueue) / seconds(span()))));
}

void MeasuredLaw::begin_drain(TimePoint now) {
  const double wait = seconds(watch_.queue()) / seconds(span());
  no_drain_before_ = now + 4 * span();
  enter(Phase::drain, std::clamp(1 - wait / 1.5, 0.2, 0.75), 3 * span() + 2 * watch_.queue(), now);
}

void MeasuredLaw::watch_mean_queue(TimePoint now) {
  if (mean_at_ == TimePoint{}) mean_at_ = mean_since_ = now;
  const double share = 1 - std::exp(-seconds(now - mean_at_) / (5 * seconds(span())));
  mean_queue_ += share * (seconds(watch_.queue()) - mean_queue_);
  mean_at_ = now;
}

// A persistent queue may be our own, because the line has become slower, or that of similar senders that have
// not settled yet. If it returns each time after backing off, it is neither.
bool MeasuredLaw::may_give_way(TimePoint now) {
  if (now - gave_way_at_ > kGaveWayFor * span()) gave_way_ = 0;
  return gave_way_ < kGiveWay;
}

void MeasuredLaw::give_way(TimePoint now, double rate) {
  ++gave_way_;
  gave_way_at_ = now;
  set_line(rate);
  growing_ = false;
  begin_drain(now);
}

}  // namespace longhaul::link::udp
