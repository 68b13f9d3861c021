// SPDX-License-Identifier: Apache-2.0
// Measures the delivery rate of the line: bytes between the arrivals of two packets, by the receiver's stamps
// (as in BBR), not across pauses of the sender. sent_packets.h decides which packets have arrived.
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
  // Over shorter trains, batching in the two hosts affects the measurement more than the line does.
  static constexpr Duration kMinTrain = std::chrono::milliseconds(20);

  // The sender's state when a packet was sent; stored with it until its fate is known.
  struct Stamp {
    std::uint64_t dispatched = 0;  // bytes ever sent, this packet included
    std::uint64_t mark = 0;        // number of the newest delivery mark at that time
    std::uint32_t limited = 0;     // packets ever sent while there was too little to send, including this one
    std::uint32_t bytes = 0;       // of this packet
  };

  // `in_flight`: packets before this one.
  Stamp on_sent(const OutgoingPacket& packet, std::size_t in_flight);
  // There was nothing to send.
  void on_idle() { limited_last_ = true; }

  // A packet has arrived, or is known to have arrived. Not for packets that contain only an ACK.
  void on_delivered(std::uint32_t bytes) { delivered_ += bytes; }
  // `largest`, sent at `sent`, is the packet with the largest number in an ACK; it arrived at `arrival`.
  // Fills the rates of `sample`.
  void measure(const Stamp& largest, TimePoint sent, Duration arrival, RateSample& sample);
  std::uint64_t round() const { return round_; }

  // `oldest`: of the packets that are still of interest; null if there are none.
  void forget_before(const Stamp* oldest);

 private:
  // The state of delivery at an ACK.
  struct Mark {
    bool known = false;           // false at a beginning until the first ACK of data sent since
    bool begins = false;          // follows a pause, or a time with too little to send
    std::uint32_t limited = 0;    // of the largest packet acknowledged at that time; so are all fields below
    std::uint64_t delivered = 0;  // bytes ever delivered
    std::uint64_t dispatched = 0;
    TimePoint sent{};
    Duration arrival{};
  };

  std::uint64_t newest_mark() const { return first_mark_ + marks_.size() - 1; }

  std::uint64_t dispatched_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint32_t limited_ = 0;
  bool limited_last_ = true;  // there was too little to send when, or since, the newest packet was sent
  std::deque<Mark> marks_;
  std::uint64_t first_mark_ = 0;        // number of marks_.front()
  std::uint64_t newest_beginning_ = 0;  // the newest mark that begins
  std::uint64_t round_ = 0;
  std::uint64_t round_mark_ = 0;  // a packet sent at or after this mark ends the round
};

}  // namespace longhaul::link::udp
