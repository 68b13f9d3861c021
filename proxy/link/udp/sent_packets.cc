// SPDX-License-Identifier: Apache-2.0
// The log of sent packets: fates from ACK ranges, losses by order and time (RFC 9002, section 6), and probe
// timeouts.
#include "proxy/link/udp/sent_packets.h"

#include <algorithm>
#include <cassert>

namespace longhaul::link::udp {

SentPackets::SentPackets(TimePoint start, Duration initial_rtt) : start_(start), rtt_(initial_rtt) {}

void SentPackets::on_sent(PacketNumber number, TimePoint now, const OutgoingPacket& packet) {
  assert(number == next_);
  next_ = number + 1;
  const bool asks = packet.kind != PacketKind::ack_only;
  const auto stamp = delivery_.on_sent(packet, in_flight_packets_);
  entries_.push_back({now, stamp, packet.content, packet.epoch, packet.kind, State::in_flight});
  ++counters_.sent_packets;
  if (asks) {
    in_flight_bytes_ += packet.bytes;
    ++in_flight_packets_;
    probe_from_ = now;
    probe_ack_delay_ = packet.asks_at_once ? kPromptAckDelay : kMaxAckDelay;
  } else {
    forget(now);
  }
}

void SentPackets::finish(SentEvents& events) const {
  events.sample.in_flight_bytes = in_flight_bytes_;
  events.sample.round = delivery_.round();
  events.sample.epochs = events.epochs;
}

Result<void> SentPackets::on_ack(const PacketAck& ack, TimePoint arrived, TimePoint now, SentEvents& events) {
  events.begin(now);
  if (const auto checked = check_ack(ack, next_); !checked) return checked;
  const PacketNumber largest = ack.largest();
  const bool largest_is_new = largest >= base_ && (!largest_acked_ || largest > *largest_acked_);
  const bool asked = largest_is_new && entry(largest).kind != PacketKind::ack_only;
  acknowledge_new(ack, now, events);
  if (events.acked.empty() && events.spurious.empty()) {
    finish(events);
    return {};
  }
  if (asked || events.sample.acked_bytes > 0) timeouts_ = 0;
  if (largest_is_new) {
    const Entry& newest = entry(largest);
    auto& sample = events.sample;
    largest_acked_ = largest;
    largest_acked_sent_ = newest.sent;
    if (asked) {
      const TimePoint came = arrived > newest.sent ? arrived : now;  // if the clock was set
      rtt_.on_sample(came - newest.sent, ack.delay, now);
      sample.rtt = rtt_.latest();
    }
    sample.forward_delay = ack.arrival - (newest.sent - start_);
    sample.sent_at = newest.sent;
    sample.dispatched_bytes = newest.stamp.dispatched;
    sample.packet_bytes = newest.bytes();
    sample.sent_epoch = newest.epoch;
    delivery_.measure(newest.stamp, newest.sent, ack.arrival, sample);
  }
  detect_losses(now, events);
  forget(now);
  finish(events);
  return {};
}

// Walks the difference between this ACK and the last one: both lists descend.
void SentPackets::acknowledge_new(const PacketAck& ack, TimePoint now, SentEvents& events) {
  // A packet that arrives only now, after a later one, was reordered behind those sent up to here.
  const TimePoint overtaken = ack.largest() >= base_ ? entry(ack.largest()).sent : largest_acked_sent_;
  const auto& known = last_ack_.ranges;
  std::size_t k = 0;
  for (const NumberRange& range : ack.ranges) {
    if (range.last < base_) break;
    PacketNumber last = range.last;
    bool done = false;
    while (k < known.size() && known[k].last >= range.first && !done) {
      if (known[k].first > last) {  // wholly above what is left of the range
        ++k;
        continue;
      }
      if (known[k].last < last) acknowledge(known[k].last + 1, last, overtaken, now, events);
      if (known[k].first <= range.first) {
        done = true;
      } else {
        last = known[k].first - 1;
        ++k;
      }
    }
    if (!done) acknowledge(range.first, last, overtaken, now, events);
  }
  last_ack_ = ack;
}

void SentPackets::acknowledge(PacketNumber first, PacketNumber last, TimePoint overtaken, TimePoint now,
                              SentEvents& events) {
  auto& sample = events.sample;
  for (PacketNumber number = std::max(first, base_); number <= last; ++number) {
    Entry& packet = entry(number);
    if (packet.state == State::acked) continue;
    if (largest_acked_ && number < *largest_acked_) {
      // The ACK that first contained the largest number did not contain this one: it arrived later.
      reordering_.on_late(now, overtaken - packet.sent, rtt_.smoothed());
    }
    const bool was_lost = packet.state == State::lost;
    packet.state = State::acked;
    ++counters_.acked_packets;
    (was_lost ? events.spurious : events.acked).push_back({number, packet.content, packet.kind});
    if (packet.kind == PacketKind::ack_only) continue;
    const std::int64_t bytes = packet.bytes();
    delivery_.on_delivered(packet.bytes());
    sample.acked_bytes += packet.bytes();
    if (was_lost) {
      ++counters_.spurious_losses;
      const bool counted = packet.kind == PacketKind::data;
      if (counted) sample.spurious_bytes += packet.bytes();
      events.tally({packet.epoch, bytes, counted ? -bytes : 0, 0});
    } else {
      in_flight_bytes_ -= packet.bytes();
      --in_flight_packets_;
      events.tally({packet.epoch, bytes, 0, 0});
    }
  }
}

Duration SentPackets::time_threshold(TimePoint now) const {
  const Duration rtt = std::max(rtt_.smoothed(), rtt_.latest());
  const Duration patience = std::max(rtt / 8, reordering_.window(now, rtt_.smoothed()));
  return std::max<Duration>(rtt + patience, RttEstimator::kGranularity);
}

// RFC 9002, section 6.1; if reordering was observed, order counts only beyond the observed time (RFC 8985,
// section 6.2).
void SentPackets::detect_losses(TimePoint now, SentEvents& events) {
  loss_at_.reset();
  if (!largest_acked_) return;
  const Duration threshold = time_threshold(now);
  const Duration reordering = reordering_.window(now, rtt_.smoothed());
  for (scan_ = std::max(scan_, base_); scan_ < *largest_acked_; ++scan_) {
    const Entry& packet = entry(scan_);
    if (packet.state != State::in_flight || packet.kind == PacketKind::ack_only) continue;
    const bool by_order =
        *largest_acked_ - scan_ >= kPacketThreshold && largest_acked_sent_ - packet.sent >= reordering;
    if (!by_order && now - packet.sent < threshold) {
      loss_at_ = packet.sent + threshold;
      return;  // those sent after it are not lost either
    }
    lose(scan_, events);
  }
}

void SentPackets::lose(PacketNumber number, SentEvents& events) {
  Entry& packet = entry(number);
  packet.state = State::lost;
  in_flight_bytes_ -= packet.bytes();
  --in_flight_packets_;
  events.lost.push_back({number, packet.content, packet.kind});
  if (packet.kind != PacketKind::data) return;
  ++counters_.lost_packets;
  events.sample.lost_bytes += packet.bytes();
  const bool new_run = !last_lost_ || *last_lost_ + 1 != number;
  last_lost_ = number;
  events.tally({packet.epoch, 0, packet.bytes(), new_run ? 1 : 0});
}

TimePoint SentPackets::probe_at() const {
  const Duration once = rtt_.probe_timeout(probe_ack_delay_);
  const Duration backed_off = once * (1 << std::min(timeouts_, 6u));
  return probe_from_ + std::max(once, std::min<Duration>(backed_off, kMaxProbeInterval));
}

std::optional<TimePoint> SentPackets::next_timeout() const {
  if (loss_at_) return loss_at_;
  if (in_flight_packets_ == 0) return std::nullopt;
  return probe_at();
}

void SentPackets::on_timeout(TimePoint now, SentEvents& events) {
  events.begin(now);
  if (loss_at_ && *loss_at_ <= now) detect_losses(now, events);
  // Both may be due: a late timer, or a probe that waited for the loss.
  if (!loss_at_ && in_flight_packets_ > 0 && probe_at() <= now) {
    ++timeouts_;
    probe_from_ = now;
    events.probes = 2;  // one of them may be lost too
  }
  forget(now);
  finish(events);
}

void SentPackets::abandon(SentEvents& events) {
  events.begin({});
  for (PacketNumber number = base_; number < next_; ++number) {
    const Entry& packet = entry(number);
    if (packet.state == State::in_flight && packet.kind != PacketKind::ack_only) lose(number, events);
  }
  loss_at_.reset();
  finish(events);
}

// A lost packet is remembered for a while, to detect its late arrival; a packet with only an ACK as long as
// it might still be acknowledged.
void SentPackets::forget(TimePoint now) {
  const TimePoint old = now - 2 * rtt_.probe_timeout(kMaxAckDelay);
  while (!entries_.empty()) {
    const Entry& oldest = entries_.front();
    const bool waits = oldest.state == State::in_flight && oldest.kind != PacketKind::ack_only;
    if (waits || (oldest.state != State::acked && oldest.sent > old)) break;
    entries_.pop_front();
    ++base_;
  }
  delivery_.forget_before(entries_.empty() ? nullptr : &entries_.front().stamp);
}

}  // namespace longhaul::link::udp
