// SPDX-License-Identifier: Apache-2.0
// Answers as routers and hosts would write them, for tests and fuzz targets of the probe.
#pragma once
#include "tools/probe/answer.h"

namespace longhaul::probe::made {

inline Flow flow_of(Family family, Kind kind) {
  Flow flow{.family = family, .kind = kind, .from_port = 40000, .to_port = 33434};
  const std::size_t size = family == Family::v4 ? 4 : 16;
  for (std::size_t i = 0; i < size; ++i) {
    flow.from[i] = static_cast<std::byte>(10 + i);
    flow.to[i] = static_cast<std::byte>(90 + 7 * i);
  }
  return flow;
}

// A packet of this host to the other, as it is quoted; IPv6 has no sum over its header, IPv4's is not looked
// at.
inline std::vector<std::byte> behind_ip(const Flow& flow, int protocol, Bytes payload) {
  std::vector<std::byte> packet(ip_header_bytes(flow.family));
  const std::size_t size = payload.size();
  if (flow.family == Family::v4) {
    packet[0] = std::byte{0x45};
    packet[2] = static_cast<std::byte>((size + 20) >> 8);
    packet[3] = static_cast<std::byte>(size + 20);
    packet[8] = std::byte{1};
    packet[9] = static_cast<std::byte>(protocol);
    std::copy_n(flow.from.begin(), 4, packet.begin() + 12);
    std::copy_n(flow.to.begin(), 4, packet.begin() + 16);
  } else {
    packet[0] = std::byte{0x60};
    packet[4] = static_cast<std::byte>(size >> 8);
    packet[5] = static_cast<std::byte>(size);
    packet[6] = static_cast<std::byte>(protocol);
    packet[7] = std::byte{1};
    std::copy_n(flow.from.begin(), 16, packet.begin() + 8);
    std::copy_n(flow.to.begin(), 16, packet.begin() + 24);
  }
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

// As a raw socket gives it: of IPv4 with the router's own IP header. `mtu` is where "too big" has it.
inline std::vector<std::byte> icmp_error(const Flow& flow, unsigned type, unsigned code, Bytes probe,
                                         unsigned mtu = 0) {
  const auto quoted = behind_ip(flow, protocol_of(flow.family, flow.kind), probe);
  std::vector<std::byte> message(8);
  message[0] = static_cast<std::byte>(type);
  message[1] = static_cast<std::byte>(code);
  message[6] = static_cast<std::byte>(mtu >> 8);
  message[7] = static_cast<std::byte>(mtu);
  message.insert(message.end(), quoted.begin(), quoted.end());
  return flow.family == Family::v4 ? behind_ip(flow, IPPROTO_ICMP, message) : message;
}

inline std::vector<std::byte> tcp_answer(const Flow& flow, unsigned flags, std::uint32_t ack,
                                         const TcpOptions& options) {
  const auto written = write_tcp_options(options);
  std::vector<std::byte> segment(20 + written.size());
  const auto put16 = [&](std::size_t at, std::uint32_t value) {
    segment[at] = static_cast<std::byte>(value >> 8);
    segment[at + 1] = static_cast<std::byte>(value);
  };
  put16(0, flow.to_port);
  put16(2, flow.from_port);
  put16(8, ack >> 16);
  put16(10, ack & 0xffff);
  segment[12] = static_cast<std::byte>(segment.size() / 4 << 4);
  segment[13] = static_cast<std::byte>(flags);
  std::copy(written.begin(), written.end(), segment.begin() + 20);
  return segment;
}

// All ones if the checksum inside is right.
inline std::uint16_t whole_sum(const Flow& flow, Bytes packet) {
  std::uint32_t pseudo = 0;
  if (flow.family == Family::v6 || flow.kind != Kind::icmp) {
    const std::size_t size = flow.family == Family::v4 ? 4 : 16;
    pseudo = std::uint32_t{ones_sum(Bytes(flow.from).first(size))} + ones_sum(Bytes(flow.to).first(size)) +
             static_cast<std::uint32_t>(protocol_of(flow.family, flow.kind)) +
             static_cast<std::uint32_t>(packet.size());
  }
  return ones_sum(packet, pseudo);
}

}  // namespace longhaul::probe::made
