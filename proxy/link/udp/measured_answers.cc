// SPDX-License-Identifier: Apache-2.0
// How MeasuredLaw answers to a queue, to a test of losses and to other senders: it eases, drains, gives way,
// shares or competes.
#include <algorithm>
#include <utility>

#include "proxy/link/udp/measured_law.h"

namespace longhaul::link::udp {

using namespace std::chrono_literals;

// Hardly anything waits in the queue.
bool MeasuredLaw::is_calm() const { return watch_.queue() < kQueue + 2ms + watch_.base_rtt() / 32; }

// More than we leave there ourselves.
Duration MeasuredLaw::queue_target() const { return 4ms + watch_.base_rtt() / 7; }

// Beyond what we make ourselves.
Duration MeasuredLaw::queue_limit() const { return watch_.base_rtt() / 2 + 15ms; }

// What the line takes of ours while a queue stands, counted as carried() does.
std::optional<double> MeasuredLaw::busy_rate() const { return standing_.busy_rate(tests_.harmless_loss()); }

// The line stood still for a moment, so there is a queue; but it is as fast as ever.
bool MeasuredLaw::drain_standstill(TimePoint now) {
  const auto busy = busy_rate();
  if (!busy || *busy <= 0.97 * line_ || !standing_.came_at_once(watch_)) return false;
  if (!standing_.believes_standstills(now, span())) return false;
  if (now >= no_drain_before_ && phase_ != Phase::drain) {
    standing_.on_standstill();
    begin_drain(now);
  }
  return true;
}

// All links that share the queue see the same queue and back off by the same share; once per phase, however
// short the round trip is.
void MeasuredLaw::ease(TimePoint now) {
  const Duration queue = watch_.queue();
  if (queue <= kQueue + times(span(), step_size()) || now - eased_at_ <= span() * 4 / 5) return;
  if (queue > queue_target() && standing_.came_at_once(watch_)) {
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

void MeasuredLaw::give_way(TimePoint now, double rate) {
  standing_.on_gave_way(now);
  set_line(rate);
  growing_ = false;
  begin_drain(now);
}

// `more`: there was room. `after`: seconds that the queue was long when the step was answered.
void MeasuredLaw::learn_share(double after, bool more, TimePoint now) {
  const bool seen = share_.learn(faster_, after, watch_, span(), line_);
  if (seen && !more && share() < 0.8)
    capacity_ = std::max(capacity_, faster_.best() / std::max(share(), 0.3));
  set_line(line_ + (more ? 1 : 0.7) * (faster_.best() - line_));
  set_line(share_.draw_even(now, line_, more));
}

void MeasuredLaw::begin_burst(TimePoint now) {
  const double rate = share_.burst_rate(line_);
  enter(Phase::burst, rate / line_, std::max(span(), times(2s, share_.burst_bytes(line_, watch_) / rate)),
        now);
  share_.begin_burst(now, epoch_, line_, watch_);
}

// What the burst put into the queue leaves it.
void MeasuredLaw::rest_after_burst(TimePoint now) {
  enter(Phase::rest, 0.5, times(1s, 2 * share_.burst_bytes(line_, watch_) / line_), now);
}

void MeasuredLaw::after_test(TimePoint now) {
  const auto policed = tests_.finish(now, span());
  if (!policed) return;
  // What arrives at full rate is what the line carries, but for the loss that slowness did not avoid. If that
  // is much it may not have been slow enough. Not measured: then the rate that avoided losses must do.
  set_line(arrived_ > 0 ? std::min(line_, arrived_ / (1 - std::min(policed->random_loss, 0.6)))
                        : line_ * policed->lower);
  growing_ = false;
}

void MeasuredLaw::begin_competing(TimePoint now) {
  // At least half of what the line carries: two is the least that there can be of us.
  const double rate = std::max(line_, capacity_ / 2);
  competition_.begin(now, watch_, tests_.losses().random_loss(), rate, span());
  enter(Phase::compete, 1, Duration::max(), now);
}

void MeasuredLaw::stop_competing(TimePoint now) {
  standing_.forget_giving_way();
  standing_.forget_mean(now);
  share_.forget();
  growing_ = false;
  tests_.losses().clear();
  begin_drain(now);
}

void MeasuredLaw::on_competing(const RateSample& sample) {
  using Next = Competition::Next;
  const TimePoint now = sample.now;
  const bool new_round = sample.round != std::exchange(last_round_, sample.round);
  set_line(competition_.on_sample(sample, watch_, capacity_, queue_target(), new_round));
  if (phase_ == Phase::compete) {
    const Next next = competition_.while_competing(now, watch_, queue_target(), span());
    if (next == Next::look) enter(Phase::look, 0.5, competition_.look_time(watch_), now);
    if (next == Next::stop) stop_competing(now);
  }
  if (phase_ == Phase::look) {
    const Next next = competition_.while_looking(now, phase_until_, watch_, span());
    if (next == Next::compete) enter(Phase::compete, 1, Duration::max(), now);
    if (next == Next::stop) stop_competing(now);
  }
}

}  // namespace longhaul::link::udp
