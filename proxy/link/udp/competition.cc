// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/competition.h"

#include <algorithm>
#include <cmath>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

void Competition::begin(TimePoint now, const LineWatch& watch, double random_loss, double rate,
                        Duration span) {
  random_before_ = random_loss < 0.005 ? 0 : random_loss;  // a few may be caused by the queue
  fullest_queue_ = watch.queue();
  const double rtt = seconds(watch.base_rtt() + watch.queue());
  cubic_.start(rate * rtt / packet_bytes_, now);
  plan_look(now, span);
  since_ = now;
  loss_counts_from_ = now;
  acked_ = lost_ = 0;
}

void Competition::plan_look(TimePoint now, Duration span) {
  next_look_ = now + std::max<Duration>(8s, 30 * span);
  queue_was_much_ = false;
}

double Competition::on_sample(const RateSample& sample, const LineWatch& watch, double capacity,
                              Duration much, bool new_round) {
  const TimePoint now = sample.now;
  if (sample.rtt)
    smoothed_rtt_ = smoothed_rtt_ == Duration{0} ? *sample.rtt : (7 * smoothed_rtt_ + *sample.rtt) / 8;
  const Duration rtt = std::max<Duration>(smoothed_rtt_, 1ms);
  queue_was_much_ = queue_was_much_ || watch.queue() > much;

  acked_ += static_cast<std::int64_t>(sample.acked_bytes);
  lost_ += static_cast<std::int64_t>(sample.lost_bytes) - static_cast<std::int64_t>(sample.spurious_bytes);
  const double bytes = static_cast<double>(acked_ + lost_);
  // The queue drops packets only while it is full; other losses are the line's own. Of those, there may be
  // more by chance. (A loss is known a round trip after it happened.)
  late_queue_.set_window(2 * rtt);
  late_queue_.add(now, watch.queue());
  const Duration late_queue = *late_queue_.value();
  fullest_queue_ = std::max(late_queue, fullest_queue_ * 999 / 1000);
  const bool nearly_full = late_queue > fullest_queue_ * 6 / 10;
  if (!nearly_full) {
    const double arrived = static_cast<double>(sample.acked_bytes + sample.lost_bytes);
    random_before_ += (static_cast<double>(sample.lost_bytes) - random_before_ * arrived) / packets(2000);
  }
  const double usual = random_before_ < 0.002 ? 0 : random_before_ * bytes;
  const double excess =
      nearly_full ? static_cast<double>(lost_) - usual - 4 * std::sqrt(usual * packet_bytes_) : 0;
  overflows_ = excess > 0;
  // Packets sent before the window shrank show nothing new. (A lost packet was sent slightly before the
  // acknowledged ones.)
  if (overflows_ && sample.sent_at > loss_counts_from_) {
    // A sender with less than half of the capacity backs off less: CUBIC alone takes minutes to reach even
    // shares.
    const double share = capacity > 0 ? cubic_.window() * packet_bytes_ / seconds(rtt) / capacity : 1;
    cubic_.on_loss(now, share < 0.45 ? 0.9 : share < 0.5 ? 0.8 : CubicWindow::kDecrease);
    loss_counts_from_ = now;
    acked_ = lost_ = 0;
  } else if (new_round) {
    acked_ = lost_ = 0;
  }
  if (static_cast<double>(sample.in_flight_bytes) + packets(8) > 0.8 * cubic_.window() * packet_bytes_)
    cubic_.on_ack(static_cast<double>(sample.acked_bytes) / packet_bytes_, rtt, now);
  // Slightly faster than the window alone allows, so that the window is the limit.
  return 1.1 * cubic_.window() * packet_bytes_ / seconds(rtt);
}

Competition::Next Competition::while_competing(TimePoint now, const LineWatch& watch, Duration much,
                                               Duration span) {
  if (now < next_look_) return Next::stay;
  // The queue is about to overflow: then all senders back off, and a look would show nothing.
  if (watch.queue() > fullest_queue_ * 8 / 10 && now < next_look_ + 20 * span) return Next::stay;
  if (watch.queue() > much) {
    look_queue_ = watch.queue();
    return Next::look;
  }
  return !queue_was_much_ && now - since_ > 30 * span ? Next::stop : Next::stay;
}

Competition::Next Competition::while_looking(TimePoint now, TimePoint ends, const LineWatch& watch,
                                             Duration span) {
  // At half our rate the queue shrinks by half a second per second if all of it is ours. This shows a round
  // trip later.
  if (overflows_) {
    next_look_ = now + 10 * span;
    return Next::compete;
  }
  if (watch.queue() < look_queue_ * 3 / 10) return Next::stop;
  if (now < ends) return Next::stay;
  plan_look(now, span);
  return Next::compete;
}

}  // namespace longhaul::link::udp
