// SPDX-License-Identifier: Apache-2.0
// The log of sent packets: fates by ACK ranges, losses by order and time (RFC 9002, section 6), probe
// timeouts, and delivery-rate samples.
#include "proxy/link/udp/sent_packets.h"

#include <algorithm>
#include <cassert>

namespace longhaul::link::udp {

namespace {
class AckCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "longhaul.ack"; }
  std::string message(int value) const override {
    switch (static_cast<AckError>(value)) {
      case AckError::never_sent:
        return "the peer acknowledges a packet that was never sent";
      case AckError::malformed:
        return "the ranges of an acknowledgement are out of order";
    }
    return "unknown error";
  }
};

void tally(std::uint16_t epoch, std::int64_t acked, std::int64_t lost, std::int32_t runs,
           SentEvents& events) {
  for (auto& known : events.epochs) {
    if (known.epoch != epoch) continue;
    known.acked_bytes += acked;
    known.lost_bytes += lost;
    known.loss_runs += runs;
    return;
  }
  events.epochs.push_back({epoch, acked, lost, runs});
}
}  // namespace

const boost::system::error_category& ack_category() {
  static const AckCategory category;
  return category;
}

SentPackets::SentPackets(TimePoint start, Duration initial_rtt) : start_(start), rtt_(initial_rtt) {}

void SentPackets::on_sent(PacketNumber number, TimePoint now, const OutgoingPacket& packet) {
  assert(number == next_);
  next_ = number + 1;
  const bool asks = packet.kind != PacketKind::ack_only;
  if (asks && packet.application_limited) ++limited_;
  // A pause, or the end of a time in which there was too little to send: earlier data says nothing about the
  // line, so the next measurement begins with the answer to this packet. It is not enough that nothing is in
  // flight: if packets are spaced wider than the round trip, that is the pacer's doing.
  const bool begins = limited_last_ && (in_flight_packets_ == 0 || !packet.application_limited);
  if (asks && begins) {
    marks_.push_back({.begins = true});
    newest_beginning_ = first_mark_ + marks_.size() - 1;
  }
  if (asks && packet.kind == PacketKind::data) limited_last_ = packet.application_limited;
  if (marks_.empty()) marks_.push_back({});
  dispatched_ += packet.bytes;
  entries_.push_back({now, dispatched_, first_mark_ + marks_.size() - 1, limited_, packet.bytes,
                      packet.content, packet.epoch, packet.kind, State::in_flight});
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

void SentPackets::begin(TimePoint now, SentEvents& events) const {
  events.acked.clear();
  events.lost.clear();
  events.spurious.clear();
  events.epochs.clear();
  events.probes = 0;
  events.sample = {};
  events.sample.now = now;
}

void SentPackets::finish(SentEvents& events) const {
  events.sample.in_flight_bytes = in_flight_bytes_;
  events.sample.round = round_;
  events.sample.epochs = events.epochs;
}

Result<void> SentPackets::check(const PacketAck& ack) const {
  if (ack.ranges.empty()) return AckError::malformed;
  if (ack.largest() >= next_) return AckError::never_sent;
  for (std::size_t i = 0; i < ack.ranges.size(); ++i) {
    if (ack.ranges[i].first > ack.ranges[i].last) return AckError::malformed;
    if (i > 0 && ack.ranges[i].last + 1 >= ack.ranges[i - 1].first) return AckError::malformed;
  }
  return {};
}

Result<void> SentPackets::on_ack(const PacketAck& ack, TimePoint arrived, TimePoint now, SentEvents& events) {
  begin(now, events);
  if (const auto checked = check(ack); !checked) return checked;
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
    sample.dispatched_bytes = newest.dispatched;
    sample.packet_bytes = newest.bytes;
    sample.sent_epoch = newest.epoch;
    take_delivery_rate(newest, ack.arrival, sample);
  }
  detect_losses(now, events);
  forget(now);
  finish(events);
  return {};
}

// Walks the difference between this ACK and the last one: both lists descend.
void SentPackets::acknowledge_new(const PacketAck& ack, TimePoint now, SentEvents& events) {
  // A packet that arrives only now, after a later one, was overtaken by those sent up to here.
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
      // The ACK that first contained the largest number did not contain this one: it came later.
      reordering_.on_late(now, overtaken - packet.sent, rtt_.smoothed());
    }
    const bool was_lost = packet.state == State::lost;
    packet.state = State::acked;
    ++counters_.acked_packets;
    (was_lost ? events.spurious : events.acked).push_back({number, packet.content, packet.kind});
    if (packet.kind == PacketKind::ack_only) continue;
    delivered_ += packet.bytes;
    sample.acked_bytes += packet.bytes;
    if (was_lost) {
      ++counters_.spurious_losses;
      const bool counted = packet.kind == PacketKind::data;
      if (counted) sample.spurious_bytes += packet.bytes;
      tally(packet.epoch, packet.bytes, counted ? -std::int64_t{packet.bytes} : 0, 0, events);
    } else {
      in_flight_bytes_ -= packet.bytes;
      --in_flight_packets_;
      tally(packet.epoch, packet.bytes, 0, 0, events);
    }
  }
}

// By the interval between two arrivals at the receiver: delays and bunching of ACKs on their way do not
// matter.
void SentPackets::take_delivery_rate(const Entry& largest, Duration arrival, RateSample& sample) {
  assert(largest.mark >= first_mark_);
  // Data sent before a pause may be acknowledged after it. Data sent after the pause is measured from its own
  // beginning, or the pause would count as the line's.
  const bool from_before = largest.mark < newest_beginning_;
  if (largest.mark >= round_mark_) {
    ++round_;
    round_mark_ = from_before ? newest_beginning_ : first_mark_ + marks_.size();
  }
  Mark here{true, false, largest.limited, delivered_, largest.dispatched, largest.sent, arrival};
  std::size_t reference = largest.mark - first_mark_;
  if (!marks_[reference].known) {
    const bool begins = marks_[reference].begins;
    marks_[reference] = here;
    marks_[reference].begins = begins;
  } else {
    while (reference > 0 && !marks_[reference].begins && marks_[reference - 1].known &&
           arrival - marks_[reference].arrival < kMinTrain)
      --reference;
    const Mark& from = marks_[reference];
    const Duration arrival_interval = arrival - from.arrival;
    if (arrival_interval > Duration{0} && largest.dispatched > from.dispatched) {
      auto& place = arrival_interval < kMinTrain ? sample.beginning : sample.delivery;
      place = DeliveryRate{.delivered_bytes = delivered_ - from.delivered,
                           .dispatched_bytes = largest.dispatched - from.dispatched,
                           .interval = std::max(arrival_interval, largest.sent - from.sent),
                           .arrival_interval = arrival_interval,
                           .application_limited = largest.limited != from.limited};
    }
  }
  if (!from_before) marks_.push_back(here);
}

Duration SentPackets::time_threshold(TimePoint now) const {
  const Duration rtt = std::max(rtt_.smoothed(), rtt_.latest());
  const Duration patience = std::max(rtt / 8, reordering_.window(now, rtt_.smoothed()));
  return std::max<Duration>(rtt + patience, RttEstimator::kGranularity);
}

// RFC 9002, section 6.1; if packets were seen to overtake each other, order counts only beyond the observed
// time (RFC 8985, section 6.2).
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
  in_flight_bytes_ -= packet.bytes;
  --in_flight_packets_;
  events.lost.push_back({number, packet.content, packet.kind});
  if (packet.kind != PacketKind::data) return;
  ++counters_.lost_packets;
  events.sample.lost_bytes += packet.bytes;
  const bool new_run = !last_lost_ || *last_lost_ + 1 != number;
  last_lost_ = number;
  tally(packet.epoch, 0, packet.bytes, new_run ? 1 : 0, events);
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
  begin(now, events);
  if (loss_at_ && *loss_at_ <= now) detect_losses(now, events);
  // Both may be due: a timer that came late, or a probe that waited for the loss.
  if (!loss_at_ && in_flight_packets_ > 0 && probe_at() <= now) {
    ++timeouts_;
    probe_from_ = now;
    events.probes = 2;  // one of them may be lost too
  }
  forget(now);
  finish(events);
}

void SentPackets::abandon(SentEvents& events) {
  begin({}, events);
  for (PacketNumber number = base_; number < next_; ++number) {
    const Entry& packet = entry(number);
    if (packet.state == State::in_flight && packet.kind != PacketKind::ack_only) lose(number, events);
  }
  loss_at_.reset();
  finish(events);
}

// A lost packet is remembered for a while, to learn from its late arrival; a packet with only an ACK as long
// as it might still be acknowledged.
void SentPackets::forget(TimePoint now) {
  const TimePoint old = now - 2 * rtt_.probe_timeout(kMaxAckDelay);
  while (!entries_.empty()) {
    const Entry& oldest = entries_.front();
    const bool waits = oldest.state == State::in_flight && oldest.kind != PacketKind::ack_only;
    if (waits || (oldest.state != State::acked && oldest.sent > old)) break;
    entries_.pop_front();
    ++base_;
  }
  const std::uint64_t needed = entries_.empty() ? first_mark_ + marks_.size() - 1 : entries_.front().mark;
  while (marks_.size() > 1 && first_mark_ < needed &&
         (!marks_[1].known || marks_[1].arrival + kMinTrain <= marks_.back().arrival)) {
    marks_.pop_front();
    ++first_mark_;
  }
}

}  // namespace longhaul::link::udp
