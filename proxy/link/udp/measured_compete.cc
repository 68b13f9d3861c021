// SPDX-License-Identifier: Apache-2.0
// MeasuredLaw beside traffic that fills queues: a sender that waits for an empty queue would starve, so it
// behaves like CUBIC, and checks occasionally whether that is still needed.
#include <algorithm>
#include <cmath>

#include "proxy/link/udp/measured_law.h"

namespace longhaul::link::udp {

using namespace std::chrono_literals;

void MeasuredLaw::begin_competing(TimePoint now) {
  const double loss = losses_.random_loss();
  random_before_ = loss < 0.005 ? 0 : loss;  // a few may be the queue's
  fullest_queue_ = watch_.queue();
  const double rtt = seconds(watch_.base_rtt() + watch_.queue());
  // At least half of the line's capacity: with two links, the fair share.
  const double rate = std::max(line_, capacity_ / 2);
  cubic_.start(rate * rtt / config_.packet_bytes, now);
  next_look_ = now + std::max<Duration>(8s, 30 * span());
  competing_since_ = now;
  queue_was_much_ = false;
  loss_counts_from_ = now;
  round_acked_ = round_lost_ = 0;
  enter(Phase::compete, 1, Duration::max(), now);
}

void MeasuredLaw::stop_competing(TimePoint now) {
  gave_way_ = 0;
  mean_queue_ = 0;
  mean_since_ = mean_at_ = now;
  share_by_queue_ = 1;
  growing_ = false;
  losses_.clear();
  begin_drain(now);
}

void MeasuredLaw::on_competing(const RateSample& sample) {
  const TimePoint now = sample.now;
  if (sample.rtt)
    smoothed_rtt_ = smoothed_rtt_ == Duration{0} ? *sample.rtt : (7 * smoothed_rtt_ + *sample.rtt) / 8;
  const Duration rtt = std::max<Duration>(smoothed_rtt_, 1ms);
  queue_was_much_ = queue_was_much_ || watch_.queue() > queue_target();

  round_acked_ += static_cast<std::int64_t>(sample.acked_bytes);
  round_lost_ +=
      static_cast<std::int64_t>(sample.lost_bytes) - static_cast<std::int64_t>(sample.spurious_bytes);
  const double bytes = static_cast<double>(round_acked_ + round_lost_);
  // The queue drops only when it is full; other losses are the line's own. Chance may add to that. (A loss is
  // known a round trip after it happened.)
  late_queue_.set_window(2 * rtt);
  late_queue_.add(now, watch_.queue());
  const Duration late_queue = *late_queue_.value();
  fullest_queue_ = std::max(late_queue, fullest_queue_ * 999 / 1000);
  const bool nearly_full = late_queue > fullest_queue_ * 6 / 10;
  if (!nearly_full) {
    const double arrived = static_cast<double>(sample.acked_bytes + sample.lost_bytes);
    random_before_ += (static_cast<double>(sample.lost_bytes) - random_before_ * arrived) / packets(2000);
  }
  const double usual = random_before_ < 0.002 ? 0 : random_before_ * bytes;
  const double excess =
      nearly_full ? static_cast<double>(round_lost_) - usual - 4 * std::sqrt(usual * config_.packet_bytes)
                  : 0;
  // Losses of packets sent before the window shrank are no news. (A lost packet was sent a moment before the
  // acknowledged ones.)
  if (excess > 0 && sample.sent_at > loss_counts_from_) {
    // A sender with less than half backs off less: CUBIC alone takes minutes to converge.
    const double share =
        capacity_ > 0 ? cubic_.window() * config_.packet_bytes / seconds(rtt) / capacity_ : 1;
    cubic_.on_loss(now, share < 0.45 ? 0.9 : share < 0.5 ? 0.8 : CubicWindow::kDecrease);
    loss_counts_from_ = now;
    round_acked_ = round_lost_ = 0;
  } else if (sample.round != last_round_) {
    round_acked_ = round_lost_ = 0;
  }
  last_round_ = sample.round;
  if (static_cast<double>(sample.in_flight_bytes) + packets(8) > 0.8 * cubic_.window() * config_.packet_bytes)
    cubic_.on_ack(static_cast<double>(sample.acked_bytes) / config_.packet_bytes, rtt, now);
  // A little faster than the window alone would send: the window should decide.
  set_line(1.1 * cubic_.window() * config_.packet_bytes / seconds(rtt));

  if (phase_ == Phase::compete && now >= next_look_) {
    if (watch_.queue() > fullest_queue_ * 8 / 10 && now < next_look_ + 20 * span()) {
      // About to overflow: then all senders back off, and the check would be useless.
    } else if (watch_.queue() > queue_target()) {
      look_queue_ = watch_.queue();
      enter(Phase::look, 0.5, look_queue_ * 8 / 5 + watch_.base_rtt() + look_queue_, now);
    } else if (!queue_was_much_ && now - competing_since_ > 30 * span()) {
      stop_competing(now);
    }
  }
  if (phase_ == Phase::look) {
    // At half our rate the queue drains by half a second per second if all of it is ours. It shows a round
    // trip later.
    if (excess > 0) {
      next_look_ = now + 10 * span();
      enter(Phase::compete, 1, Duration::max(), now);
    } else if (watch_.queue() < look_queue_ * 3 / 10) {
      stop_competing(now);
    } else if (now >= phase_until_) {
      next_look_ = now + std::max<Duration>(8s, 30 * span());
      queue_was_much_ = false;
      enter(Phase::compete, 1, Duration::max(), now);
    }
  }
}

}  // namespace longhaul::link::udp
