// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/delivery_meter.h"

#include <algorithm>
#include <cassert>

namespace longhaul::link::udp {

DeliveryMeter::Stamp DeliveryMeter::on_sent(const OutgoingPacket& packet, std::size_t in_flight) {
  const bool asks = packet.kind != PacketKind::ack_only;
  if (asks && packet.application_limited) ++limited_;
  // After a pause, or a time in which there was too little to send, earlier data shows nothing about the
  // line, so the next measurement begins with the acknowledgement of this packet. It is not sufficient that
  // nothing is in flight: the pacer may space packets wider than the round trip.
  const bool begins = limited_last_ && (in_flight == 0 || !packet.application_limited);
  if (asks && begins) {
    marks_.push_back({.begins = true});
    newest_beginning_ = newest_mark();
  }
  if (asks && packet.kind == PacketKind::data) limited_last_ = packet.application_limited;
  if (marks_.empty()) marks_.push_back({});
  dispatched_ += packet.bytes;
  return {.dispatched = dispatched_, .mark = newest_mark(), .limited = limited_, .bytes = packet.bytes};
}

// By the interval between two arrivals at the receiver: delays and bunching of ACKs in transit do not matter.
void DeliveryMeter::measure(const Stamp& largest, TimePoint sent, Duration arrival, RateSample& sample) {
  assert(largest.mark >= first_mark_);
  // Data sent before a pause may be acknowledged after it. Data sent after the pause is measured from its own
  // beginning, or the pause would be attributed to the line.
  const bool from_before = largest.mark < newest_beginning_;
  if (largest.mark >= round_mark_) {
    ++round_;
    round_mark_ = from_before ? newest_beginning_ : first_mark_ + marks_.size();
  }
  Mark here{true, false, largest.limited, delivered_, largest.dispatched, sent, arrival};
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
                           .interval = std::max(arrival_interval, sent - from.sent),
                           .arrival_interval = arrival_interval,
                           .application_limited = largest.limited != from.limited};
    }
  }
  if (!from_before) marks_.push_back(here);
}

void DeliveryMeter::forget_before(const Stamp* oldest) {
  const std::uint64_t needed = oldest ? oldest->mark : newest_mark();
  while (marks_.size() > 1 && first_mark_ < needed &&
         (!marks_[1].known || marks_[1].arrival + kMinTrain <= marks_.back().arrival)) {
    marks_.pop_front();
    ++first_mark_;
  }
}

}  // namespace longhaul::link::udp
