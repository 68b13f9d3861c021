// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/longer_path.h"

#include <algorithm>

namespace longhaul::link::udp {

namespace {

constexpr double kSlow = 0.5;
constexpr Duration kMostLeftOut = std::chrono::milliseconds(25);
constexpr unsigned kMostRises = 3;
constexpr Duration kLeastMeasured = std::chrono::milliseconds(5);

Duration time_of(double bytes, double rate) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(bytes / rate));
}

// What has to be left out of a queue of this length to see a difference.
Duration enough_of(Duration rise, Duration variation) {
  return std::clamp(rise / 2, LongerPath::kSmallestRise, kMostLeftOut) + 3 * variation;
}

// The time in which so much is left out.
Duration slow_time(Duration left_out, double our_share) {
  return std::chrono::duration_cast<Duration>(left_out / (1 - kSlow) / our_share) * 5 / 4;
}

}  // namespace

bool LongerPath::on_sample(const RateSample& sample, const Known& known) {
  if (!sample.forward_delay || !sample.rtt) {
    on_acked(sample.acked_bytes);
    return false;
  }
  const Packet packet{sample.sent_at, sample.dispatched_bytes, *sample.forward_delay};
  bool longer = false;
  if (known.rate <= 0) {
    doubt_.reset();
  } else if (doubt_) {
    longer = examine(packet, sample, known);
  } else if (const Duration rise = last_ ? rise_between(*last_, packet, known) : Duration{0};
             rise > Duration{0}) {
    begin(packet, sample, {.rise = rise, .before = known.queue}, known);
  }
  last_ = packet;
  set_gain(sample, known);
  return longer;
}

void LongerPath::set_gain(const RateSample& sample, const Known& known) {
  gain_ = 1;
  if (!doubt_) return;
  if (doubt_->slower && known.rate > 0) gain_ = std::min(1.0, doubt_->slower->rate / known.rate);
  if (sample.now < doubt_->slow_until) gain_ *= kSlow;
}

Duration LongerPath::rise_between(const Packet& before, const Packet& packet, const Known& known) {
  const Duration rise = packet.delay - before.delay;
  if (rise < std::max({kSmallestRise, known.base_rtt / 16, 4 * known.variation})) return Duration{0};
  const auto between = static_cast<double>(packet.dispatched_bytes - before.dispatched_bytes);
  return time_of(between, known.rate) > rise / 2 ? Duration{0} : rise;
}

void LongerPath::begin(const Packet& packet, const RateSample& sample, const Queues& queues,
                       const Known& known) {
  const Duration enough = enough_of(queues.rise, known.variation);
  const Duration slow = slow_time(enough, known.rate / known.capacity);
  least_delay_ = packet.delay;
  least_rtt_ = *sample.rtt;
  slower_rate_.reset();
  doubt_ = {.began = sample.now,
            .since = packet,
            .since_rtt = *sample.rtt,
            .queues = queues,
            .enough = enough,
            .slow_until = sample.now + slow,
            .ends = sample.now + 4 * *sample.rtt + slow * 16 / 5};
}

void LongerPath::begin_again(const Packet& packet, const RateSample& sample, const Known& known) {
  const Doubt before = *doubt_;
  begin(packet, sample,
        {.rise = before.queues.rise + packet.delay - before.since.delay, .before = before.queues.before},
        known);
  doubt_->rises = before.rises + 1;
}

bool LongerPath::examine(const Packet& packet, const RateSample& sample, const Known& known) {
  least_delay_ = std::min(least_delay_, packet.delay);
  least_rtt_ = std::min(least_rtt_, *sample.rtt);
  Doubt& doubt = *doubt_;
  doubt.acked_bytes += sample.acked_bytes;
  if (doubt.drained) {  // so it was a queue; packets that were sent slowly still arrive
    if (packet.sent_at >= doubt.slow_until) doubt_.reset();
    return false;
  }
  if (sample.now > doubt.ends) {  // nobody can tell
    doubt_.reset();
    return false;
  }
  if (doubt.slower) return examine_slower(packet, sample, known);
  if (doubt.rises < kMostRises && packet.sent_at < doubt.began &&
      rise_between(*last_, packet, known) > Duration{0}) {
    begin_again(packet, sample, known);
    return false;
  }
  const Duration fell = doubt.since.delay - packet.delay;
  if (known.alone && -fell > std::max(kSmallestRise / 2, doubt.queues.rise / 8) + 3 * known.variation &&
      packet.arrival() - doubt.since.arrival() >= kLeastMeasured) {
    begin_slower(packet, sample, known);
    return false;
  }
  if (-fell > std::max(doubt.enough, doubt.queues.rise / 2)) {  // it still grows
    doubt_.reset();
    return false;
  }
  const auto since = static_cast<double>(packet.dispatched_bytes - doubt.since.dispatched_bytes);
  const double expected = known.rate * seconds(packet.sent_at - doubt.since.sent_at);
  const Duration left_out = time_of(expected - since, known.capacity);
  doubt.least_left_out = std::min(doubt.least_left_out, left_out);
  const Duration fell_of_rise = fell - doubt.queues.before;
  const Duration drained = left_out - doubt.least_left_out;  // if it was a queue
  if (drained < doubt.enough || (fell_of_rise > drained / 4 && fell_of_rise < drained / 2)) return false;
  if (fell_of_rise <= drained / 4) {
    doubt_.reset();
    return true;
  }
  doubt.drained = true;
  doubt.slow_until = std::min(doubt.slow_until, sample.now);
  return false;
}

// Bytes per second since the doubt began, as the line took them: lost packets took their time, those that
// found the queue full did not.
double LongerPath::arrival_rate(const Packet& packet, const Known& known) const {
  const double time = seconds(packet.arrival() - doubt_->since.arrival());
  const auto sent = static_cast<double>(packet.dispatched_bytes - doubt_->since.dispatched_bytes);
  const double arrived = static_cast<double>(doubt_->acked_bytes) / (1 - std::min(known.loss, 0.6));
  return std::min({sent / time, arrived / time, known.rate});
}

void LongerPath::begin_slower(const Packet& packet, const RateSample& sample, const Known& known) {
  Doubt& doubt = *doubt_;
  doubt.slower = {.since = sample.now, .rate = arrival_rate(packet, known), .latest = packet};
  Slower& slower = *doubt.slower;
  // What is on its way was sent too fast and becomes a queue, unless it finds the queue full.
  const Duration on_way = time_of(static_cast<double>(sample.in_flight_bytes), slower.rate);
  slower.own_queue = std::max(packet.delay - doubt.since.delay, on_way - doubt.since_rtt);
  const Duration slow =
      slow_time(slower.own_queue + doubt.queues.before + doubt.enough, known.rate / known.capacity);
  doubt.slow_until = sample.now + slow;
  doubt.ends = sample.now + 4 * *sample.rtt + slow * 16 / 5;
}

bool LongerPath::examine_slower(const Packet& packet, const RateSample& sample, const Known& known) {
  Doubt& doubt = *doubt_;
  Slower& slower = *doubt.slower;
  if (packet.sent_at < slower.since) {
    // What is sent too fast does not make a queue shorter: the line stood still for a moment, and is no
    // slower.
    if (packet.sent_at < doubt.began &&
        packet.delay + kSmallestRise / 4 + 2 * known.variation < slower.latest.delay) {
      begin_again(packet, sample, known);
      return false;
    }
    // So the line is busy.
    slower.rate = arrival_rate(packet, known);
    slower.latest = packet;
    return false;
  }
  if (packet.delay >= slower.latest.delay) {
    slower.latest = packet;  // what was sent too fast still arrives; for long it is other traffic
    if (packet.sent_at - slower.since > doubt.enough + doubt.queues.rise) doubt_.reset();
    return false;
  }
  const auto since = static_cast<double>(packet.dispatched_bytes - slower.latest.dispatched_bytes);
  const double expected = slower.rate * seconds(packet.sent_at - slower.latest.sent_at);
  const Duration drained = time_of(expected - since, slower.rate / known.rate * known.capacity);
  const Duration fell = slower.latest.delay - packet.delay;
  const Duration own = slower.latest.delay - doubt.since.delay + doubt.queues.before;
  if (drained < own + doubt.enough) return false;
  const Duration excess = drained - own;
  if (fell > own + excess / 4 && fell < own + excess / 2) return false;
  if (fell <= own + excess / 4 && fell >= own * 3 / 4 - kSmallestRise / 2 - doubt.queues.before) {
    slower_rate_ = slower.rate;
    doubt_.reset();
    return true;
  }
  doubt_.reset();  // it was a queue
  return false;
}

}  // namespace longhaul::link::udp
