// SPDX-License-Identifier: Apache-2.0
// The probes as bytes: what follows the IP header, which the kernel writes. Every probe of a run has the same
// ports and the same first four bytes, so that routers with several ways send all of them one way (as Paris
// traceroute does); what tells them apart is a number in a field that is quoted back. Leaves sending to
// prober.h.
#pragma once
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <vector>

#include "codecs/bytes.h"
#include "tools/probe/tcp_options.h"

namespace longhaul::probe {

enum class Family { v4, v6 };
enum class Kind { udp, icmp, tcp };

using Address = std::array<std::byte, 16>;  // IPv4 in the first four bytes

// What all probes of a run have in common.
struct Flow {
  Family family = Family::v4;
  Kind kind = Kind::udp;
  Address from{};
  Address to{};
  std::uint16_t from_port = 0;  // of ICMP: the echo's identifier
  std::uint16_t to_port = 0;
};

constexpr unsigned ip_header_bytes(Family family) { return family == Family::v4 ? 20 : 40; }
constexpr int protocol_of(Family family, Kind kind) {
  if (kind == Kind::udp) return IPPROTO_UDP;
  if (kind == Kind::tcp) return IPPROTO_TCP;
  return family == Family::v4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6};
}
// The smallest probe, IP header included.
unsigned least_bytes(Family family, Kind kind);

// What goes after the IP header of a packet of `ip_bytes`, with its checksum. `id` is 1 to 65534 and is found
// again in UDP's checksum, ICMP's sequence number, the upper half of TCP's. TCP probes are SYNs with the
// options of an ordinary one, and carry the rest as data.
std::vector<std::byte> make_probe(const Flow& flow, std::uint16_t id, unsigned ip_bytes);
std::vector<std::byte> make_syn(const Flow& flow, std::uint16_t id, const TcpOptions& options,
                                unsigned ip_bytes = 0);
// What ends the half-open connection that a SYN of ours left behind (RFC 9293 section 3.10.7.4).
std::vector<std::byte> make_reset(const Flow& flow, std::uint32_t sequence);

constexpr std::uint32_t sequence_of(std::uint16_t id) { return std::uint32_t{id} << 16; }

std::uint16_t ones_sum(Bytes bytes,
                       std::uint32_t start = 0);  // of 16-bit words, folded (RFC 1071), not inverted

}  // namespace longhaul::probe
