// SPDX-License-Identifier: Apache-2.0
// How fast the line delivers: bytes between the arrivals of two packets, by the receiver's stamps (delivery
// rate as in BBR), not across pauses of the sender. Which packets arrive is known to sent_packets.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "proxy/link/udp/outgoing_packet.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class DeliveryMeter {
 public:
  // Shorter trains say more about batching in the two hosts than about the line.
  static constexpr Duration kMinTrain = std::chrono::milliseconds(20);

  // The state of sending when a packet was sent; kept with it until its fate is known.
  struct Stamp {
    std::uint64_t dispatched = 0;  // bytes ever sent, this packet included
    std::uint64_t mark = 0;        // number of the delivery mark that was the newest then
    std::uint32_t limited = 0;     // packets ever sent while there was too little to send, this one included
    std::uint32_t bytes = 0;       // of this packet
  };

  // `in_flight`: packets before this one.
  Stamp on_sent(const OutgoingPacket& packet, std::size_t in_flight);
  // There was nothing to send.
  void on_idle() { limited_last_ = true; }

  // A packet has arrived, or is known to have arrived: not one that has only an ACK.
  void on_delivered(std::uint32_t bytes) { delivered_ += bytes; }
  // Of all that an ACK reports, the packet with the largest number, sent at `sent`, had arrived at `arrival`.
  // Fills the rates of `sample`.
  void measure(const Stamp& largest, TimePoint sent, Duration arrival, RateSample& sample);
  std::uint64_t round() const { return round_; }

  // `oldest`: of the packets that are still of interest; none: there are none.
  void forget_before(const Stamp* oldest);

 private:
  // The state of delivery at an ACK.
  struct Mark {
    bool known = false;           // at a beginning: by the first ACK of what was sent since, and not before
    bool begins = false;          // a pause was before it, or a time with too little to send
    std::uint32_t limited = 0;    // of the largest packet then acknowledged, as all below
    std::uint64_t delivered = 0;  // bytes ever delivered
    std::uint64_t dispatched = 0;
    TimePoint sent{};
    Duration arrival{};
  };

  std::uint64_t newest_mark() const { return first_mark_ + marks_.size() - 1; }

  std::uint64_t dispatched_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint32_t limited_ = 0;
  bool limited_last_ = true;  // there was too little to send when, or since, the newest packet went
  std::deque<Mark> marks_;
  std::uint64_t first_mark_ = 0;        // number of marks_.front()
  std::uint64_t newest_beginning_ = 0;  // the newest mark that begins
  std::uint64_t round_ = 0;
  std::uint64_t round_mark_ = 0;  // a packet sent at or after this mark ends the round
};

}  // namespace longhaul::link::udp
