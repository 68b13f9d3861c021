// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/longer_path.h"

#include <algorithm>

namespace longhaul::link::udp {

namespace {

constexpr double kSlow = 0.5;
constexpr Duration kMostLeftOut = std::chrono::milliseconds(25);
constexpr unsigned kMostRises = 3;
constexpr Duration kLongestDoubt = std::chrono::seconds(6);
constexpr Duration kLeastMeasured = std::chrono::milliseconds(5);

Duration time_of(double bytes, double rate) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(bytes / rate));
}

// How much less to send to see a difference if the rise is a queue of this length.
Duration enough_of(Duration rise, Duration variation) {
  return std::clamp(rise / 2, LongerPath::kSmallestRise, kMostLeftOut) + 3 * variation;
}

// The time needed to send that much less.
Duration slow_time(Duration left_out, double our_share) {
  return std::chrono::duration_cast<Duration>(left_out / (1 - kSlow) / our_share);
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
  if (rise < std::max({kSmallestRise, known.usual_rise, 4 * known.variation})) return Duration{0};
  const auto between = static_cast<double>(packet.dispatched_bytes - before.dispatched_bytes);
  return time_of(between, known.rate) > rise / 2 ? Duration{0} : rise;
}

void LongerPath::begin(const Packet& packet, const RateSample& sample, const Queues& queues,
                       const Known& known) {
  const Duration enough = enough_of(queues.rise, known.variation);
  const Duration slow = slow_time(enough * 5 / 4, known.rate / known.capacity);
  least_delay_ = packet.delay;
  least_rtt_ = *sample.rtt;
  slower_rate_.reset();
  const auto unseen =
      static_cast<double>(packet.dispatched_bytes - last_->dispatched_bytes) - sample.packet_bytes;
  doubt_ = {.began = sample.now,
            .known = known,
            .since = packet,
            .since_rtt = *sample.rtt,
            .unseen_bytes = std::max(unseen, 0.),
            .unseen_time = packet.sent_at - last_->sent_at,
            .queues = queues,
            .enough = enough,
            .slow_until = sample.now + slow,
            .ends = sample.now + 4 * *sample.rtt + slow * 16 / 5};
}

void LongerPath::begin_again(const Packet& packet, const RateSample& sample, const Known& known) {
  const Doubt before = *doubt_;
  Known then = before.known;  // later losses may be caused by the queue
  then.variation = known.variation;
  begin(packet, sample,
        {.rise = before.queues.rise + packet.delay - before.since.delay, .before = before.queues.before},
        then);
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
  if (sample.now > doubt.ends) {  // no decision possible
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
    begin_slower(packet, sample);
    return false;
  }
  if (-fell > std::max(doubt.enough, doubt.queues.rise / 2)) {  // it is still growing
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

// Bytes per second since the doubt began, as delivered by the line: lost packets took their time, except
// those that found the queue full.
double LongerPath::arrival_rate(const Packet& packet) const {
  const double time = seconds(packet.arrival() - doubt_->since.arrival());
  const auto sent = static_cast<double>(packet.dispatched_bytes - doubt_->since.dispatched_bytes);
  const double arrived = static_cast<double>(doubt_->acked_bytes) / (1 - std::min(doubt_->known.loss, 0.6));
  return std::min({sent / time, arrived / time, doubt_->known.rate});
}

void LongerPath::begin_slower(const Packet& packet, const RateSample& sample) {
  doubt_->slower = {.since = sample.now,
                    .slow_from = sample.now,
                    .rate = arrival_rate(packet),
                    .queue = packet.delay - doubt_->since.delay};
  // Packets in flight were sent too fast and become a queue, unless they find the queue full.
  const Duration on_way = time_of(static_cast<double>(sample.in_flight_bytes), doubt_->slower->rate);
  expect_own(std::max(doubt_->slower->queue, on_way - doubt_->since_rtt), sample);
}

// The excess that was sent: it takes that long to drain.
void LongerPath::expect_own(Duration queue, const RateSample& sample) {
  Doubt& doubt = *doubt_;
  doubt.slower->expected = queue;
  // A little longer than needed: the rate may be slightly wrong, and packets are sent one by one.
  const Duration left_out = queue + queue / 16 + may_drain() + doubt.enough;
  const Duration spare =
      left_out / 16 + kSmallestRise + time_of(2. * sample.full_packet_bytes, doubt.slower->rate);
  const Duration slow = slow_time(left_out + spare, doubt.known.rate / doubt.known.capacity);
  doubt.slow_until = doubt.slower->slow_from + slow;
  // A queue that takes long to leave is no reason to send next to nothing for as long.
  doubt.ends = doubt.slower->since + std::min(4 * *sample.rtt + slow * 16 / 5, kLongestDoubt);
}

// The part of the first late packet's delay that may be due to queues: the previous queue, and what was sent
// before that packet without being acknowledged separately.
Duration LongerPath::may_drain() const {
  const double carries = doubt_->slower->rate * doubt_->known.capacity / doubt_->known.rate;
  const Duration unseen = time_of(doubt_->unseen_bytes, carries) - doubt_->unseen_time;
  return doubt_->queues.before + std::max(unseen, Duration{0});
}

// How much the queue grew from the previous packet to this one.
Duration LongerPath::growth(const Packet& packet) const {
  const auto sent = static_cast<double>(packet.dispatched_bytes - last_->dispatched_bytes);
  const double carried = doubt_->slower->rate * seconds(packet.sent_at - last_->sent_at);
  const double others = doubt_->known.capacity / doubt_->known.rate;
  return time_of(sent - carried, doubt_->slower->rate * others);
}

bool LongerPath::examine_slower(const Packet& packet, const RateSample& sample, const Known& known) {
  Doubt& doubt = *doubt_;
  Slower& slower = *doubt.slower;
  const Duration risen = packet.delay - doubt.since.delay;
  const Duration grown = growth(packet);
  if (risen > slower.expected) expect_own(risen, sample);
  if (packet.sent_at < slower.since) return on_sent_too_fast(packet, sample, grown, known);
  if (risen >= slower.own) {  // the excess still arrives; if for long, it is other traffic
    slower.own = slower.queue = risen;
    slower.left_out = Duration{0};
    slower.slow_from = packet.sent_at;
    if (packet.sent_at - slower.since > doubt.enough + doubt.queues.rise) doubt_.reset();
    return false;
  }
  if (slower.expected != slower.own) expect_own(slower.own, sample);
  const Duration empty = -may_drain();
  slower.left_out += std::max(empty - (slower.queue + grown), Duration{0});
  slower.queue = std::max(slower.queue + grown, empty);
  // The rate may be slightly wrong.
  if (slower.left_out < doubt.enough + slower.own / 16) return false;
  const Duration missing = slower.queue - risen;
  if (missing > slower.left_out / 4 && missing < slower.left_out / 2) return false;
  const bool drained = risen <= (slower.own - empty) / 4 + kSmallestRise / 2;
  const bool longer = drained && missing <= slower.left_out / 4;
  if (longer) slower_rate_ = slower.rate;
  doubt_.reset();  // a longer path, a queue, or the queue of others
  return longer;
}

bool LongerPath::on_sent_too_fast(const Packet& packet, const RateSample& sample, Duration grown,
                                  const Known& known) {
  Doubt& doubt = *doubt_;
  Slower& slower = *doubt.slower;
  const Duration risen = packet.delay - doubt.since.delay;
  const Duration least = std::max(slower.queue + std::min(grown, Duration{0}), -may_drain());
  // The queue shrank only by what was left out, as in a pause: the line stalled for a moment, and is not
  // slower.
  const Duration margin = kSmallestRise / 4 + 2 * known.variation + std::max(-grown, Duration{0}) / 8;
  if (packet.sent_at < doubt.began && risen + margin < least) {
    begin_again(packet, sample, known);
    return false;
  }
  if (grown < Duration{0} && least < kSmallestRise / 4) slower.paused = true;
  if (!slower.paused) slower.rate = arrival_rate(packet);  // the line was busy from the first one on
  slower.own = slower.queue = risen;
  return false;
}

}  // namespace longhaul::link::udp
