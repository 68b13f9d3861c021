// SPDX-License-Identifier: Apache-2.0
// The sender's description of a packet, for measurements and for loss detection.
#pragma once
#include <cstdint>

namespace longhaul::link::udp {

enum class PacketKind : std::uint8_t {
  data,       // to be acknowledged; counts as in flight; its loss counts
  mtu_probe,  // the same, but its loss only shows that it was too large (RFC 9000, section 14.4)
  // Not acknowledged for its own sake, never declared lost, forgotten after a while: its `content` must not
  // need to be returned (such as the number in its ACK).
  ack_only,
};

struct OutgoingPacket {
  std::uint32_t bytes = 0;    // IP bytes
  std::uint32_t content = 0;  // the owner's handle, returned when the packet's fate is known
  PacketKind kind = PacketKind::data;
  std::uint16_t epoch = 0;           // RateLaw::epoch()
  bool application_limited = false;  // the owner had no more than this to send
  bool asks_at_once = false;         // its receiver acknowledges it without the usual delay
};

}  // namespace longhaul::link::udp
