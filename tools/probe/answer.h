// SPDX-License-Identifier: Apache-2.0
// What comes back for a probe: ICMP errors that quote it (RFC 792, RFC 4443), echo replies, TCP answers.
// Reads untrusted bytes; prober.h waits for them and knows their sender.
#pragma once
#include <optional>

#include "tools/probe/packet.h"

namespace longhaul::probe {

enum class What {
  expired,      // a router on the way: the hop limit was used up
  reached,      // the far host itself: echo reply, closed UDP port, SYN-ACK or reset
  unreachable,  // a router or host says it does not go further
  prohibited,   // a filter says so
  too_big,      // `mtu` is what would go through
};

struct Answer {
  What what = What::expired;
  std::uint16_t id = 0;
  unsigned ip_bytes = 0;  // of the answer, IP header included
  unsigned mtu = 0;
  std::uint8_t tcp_flags = 0;  // of a TCP answer
  std::uint32_t tcp_ack = 0;
  std::optional<HeaderOptions> tcp_options;  // of the answer, or of the quoted probe as it arrived there
};

// An ICMP message; of IPv4 with its IP header in front, of IPv6 without, as raw sockets give them. Nothing if
// it does not answer a probe of this flow.
std::optional<Answer> read_icmp(const Flow& flow, Bytes packet);
// A TCP segment, likewise.
std::optional<Answer> read_tcp(const Flow& flow, Bytes packet);

constexpr std::uint8_t kFin = 1, kSyn = 2, kRst = 4, kAck = 16;

}  // namespace longhaul::probe
