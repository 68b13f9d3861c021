// SPDX-License-Identifier: Apache-2.0
// The content of a PACKET_ACK as numbers, and its limits. carrier_frames.h has its wire form,
// received_packets.h makes it and sent_packets.h uses it.
#pragma once
#include <boost/container/static_vector.hpp>
#include <cstdint>

#include "proxy/link/udp/packet_number.h"

namespace longhaul::link::udp {

// Both ends are included.
struct NumberRange {
  PacketNumber first;
  PacketNumber last;
  bool operator==(const NumberRange&) const = default;
};

inline constexpr std::size_t kMaxAckRanges = 64;

struct PacketAck {
  Duration delay{0};    // from the arrival of the largest number until this ACK was made
  Duration arrival{0};  // of the largest number, by the receiver's clock, which starts with its carrier
  // Descending, neither touching nor overlapping; the first one ends with the largest number. Never empty.
  boost::container::static_vector<NumberRange, kMaxAckRanges> ranges;

  PacketNumber largest() const { return ranges.front().last; }
};

}  // namespace longhaul::link::udp
