// SPDX-License-Identifier: Apache-2.0
// Streams, packets and places in streams by their numbers in words, as tests name them: 1_stream, 7_packet,
// 100_offset. What a failed test
// prints of them is here, too.
#pragma once
#include <ostream>

#include "proxy/link/udp/packet_number.h"

namespace longhaul::link {

constexpr StreamId operator""_stream(unsigned long long number) { return StreamId(number); }
constexpr StreamOffset operator""_offset(unsigned long long number) { return StreamOffset(number); }
constexpr udp::PacketNumber operator""_packet(unsigned long long number) { return udp::PacketNumber(number); }

template <class Kind, class Number>
std::ostream& operator<<(std::ostream& out, Id<Kind, Number> id) {
  return out << id.number();
}
template <class Kind>
std::ostream& operator<<(std::ostream& out, Position<Kind> position) {
  return out << position.number();
}

}  // namespace longhaul::link
