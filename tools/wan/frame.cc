// SPDX-License-Identifier: Apache-2.0
// Reads just enough of Ethernet, 802.1Q, IPv4 (RFC 791) and IPv6 (RFC 8200) headers.
#include "tools/wan/frame.h"

#include <optional>

namespace longhaul::wan {
namespace {

constexpr unsigned kIpv4 = 0x0800;
constexpr unsigned kIpv6 = 0x86dd;
constexpr unsigned kTcp = 6;
constexpr unsigned kUdp = 17;

unsigned octet(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]);
}
unsigned word(std::span<const std::byte> bytes, std::size_t at) {
  return octet(bytes, at) << 8 | octet(bytes, at + 1);
}

void put_word(std::span<std::byte> bytes, std::size_t at, unsigned value) {
  bytes[at] = static_cast<std::byte>(value >> 8);
  bytes[at + 1] = static_cast<std::byte>(value & 0xff);
}

struct Payload {
  unsigned ether_type;
  std::size_t offset;
};

std::optional<Payload> payload_of(std::span<const std::byte> frame) {
  std::size_t offset = kEthernetHeader;
  if (frame.size() < offset) return std::nullopt;
  unsigned type = word(frame, offset - 2);
  while ((type == 0x8100 || type == 0x88a8) && frame.size() >= offset + kVlanTag) {
    offset += kVlanTag;
    type = word(frame, offset - 2);
  }
  return Payload{type, offset};
}

struct Transport {
  unsigned protocol;
  std::size_t offset;  // in the packet
  std::size_t end;
};

std::optional<Transport> transport_of(unsigned ether_type, std::span<const std::byte> packet) {
  if (ether_type == kIpv4 && packet.size() >= 20) {
    const std::size_t header = (octet(packet, 0) & 15) * 4;
    const std::size_t end = word(packet, 2);
    if (header < 20 || end < header || end > packet.size()) return std::nullopt;
    return Transport{octet(packet, 9), header, end};
  }
  if (ether_type == kIpv6 && packet.size() >= 40) {
    const std::size_t end = 40 + word(packet, 4);
    if (end > packet.size()) return std::nullopt;
    unsigned next = octet(packet, 6);
    std::size_t offset = 40;
    while (next == 0 || next == 43 || next == 60) {  // hop-by-hop, routing, destination options
      if (offset + 8 > end) return std::nullopt;
      next = octet(packet, offset);
      offset += 8 + octet(packet, offset + 1) * 8;
    }
    return Transport{next, offset, end};
  }
  return std::nullopt;
}

}  // namespace

std::uint32_t ip_bytes(std::span<const std::byte> frame) {
  const auto payload = payload_of(frame);
  if (!payload) return static_cast<std::uint32_t>(frame.size());
  const auto packet = frame.subspan(payload->offset);
  std::size_t length = packet.size();
  if (payload->ether_type == kIpv4 && packet.size() >= 20 && word(packet, 2) >= 20) length = word(packet, 2);
  if (payload->ether_type == kIpv6 && packet.size() >= 40) length = 40 + word(packet, 4);
  return static_cast<std::uint32_t>(length < packet.size() ? length : packet.size());
}

bool finish_checksum(std::span<std::byte> frame) {
  const auto payload = payload_of(frame);
  if (!payload) return false;
  const auto packet = frame.subspan(payload->offset);
  const auto transport = transport_of(payload->ether_type, packet);
  if (!transport) return false;
  const std::size_t field = transport->protocol == kTcp ? 16 : transport->protocol == kUdp ? 6 : 0;
  if (field == 0 || transport->offset + field + 2 > transport->end) return false;
  const auto segment = packet.subspan(transport->offset, transport->end - transport->offset);
  std::uint32_t sum =
      0;  // at most 32768 words of 16 bits: no overflow. The field's own partial sum is among them.
  for (std::size_t i = 0; i + 1 < segment.size(); i += 2) sum += word(segment, i);
  if (segment.size() % 2 != 0) sum += octet(segment, segment.size() - 1) << 8;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  sum = ~sum & 0xffff;
  if (sum == 0 && transport->protocol == kUdp) sum = 0xffff;  // RFC 768: zero means no checksum
  put_word(segment, field, sum);
  return true;
}

PacketTraits traits_of(std::span<const std::byte> frame) {
  const auto payload = payload_of(frame);
  if (!payload) return {};
  const auto packet = frame.subspan(payload->offset);
  std::uint64_t flow = 0;
  const auto add = [&flow](std::span<const std::byte> bytes) {  // FNV-1a
    for (const std::byte byte : bytes) flow = (flow ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  };
  unsigned field = 0;
  if (payload->ether_type == kIpv4 && packet.size() >= 20) {
    field = octet(packet, 1) & 3;
    add(packet.subspan(9, 1));
    add(packet.subspan(12, 8));
  } else if (payload->ether_type == kIpv6 && packet.size() >= 40) {
    field = octet(packet, 1) >> 4 & 3;
    add(packet.subspan(8, 32));
  } else {
    return {};
  }
  // Fragments have no ports but the first: all of one packet by the addresses alone.
  const bool fragment = payload->ether_type == kIpv4 && (word(packet, 6) & 0x3fff) != 0;
  if (const auto transport = transport_of(payload->ether_type, packet); transport && !fragment) {
    flow = (flow ^ transport->protocol) * 0x100000001b3u;
    const bool has_ports = transport->protocol == kTcp || transport->protocol == kUdp;
    if (has_ports && transport->offset + 4 <= transport->end) add(packet.subspan(transport->offset, 4));
  }
  return {flow, field == 0 ? Ecn::not_capable : field == 3 ? Ecn::experienced : Ecn::capable};
}

void mark_congestion(std::span<std::byte> frame) {
  const auto payload = payload_of(frame);
  if (!payload) return;
  const auto packet = frame.subspan(payload->offset);
  if (payload->ether_type == kIpv6 && packet.size() >= 40) packet[1] |= std::byte{0x30};
  if (payload->ether_type != kIpv4 || packet.size() < 20) return;
  const unsigned before = word(packet, 0), after = before | 3;
  packet[1] |= std::byte{3};
  std::uint32_t sum = (~word(packet, 10) & 0xffff) + (~before & 0xffff) + after;  // RFC 1624
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  put_word(packet, 10, ~sum & 0xffff);
}

bool flip_payload_bit(std::span<std::byte> frame, double at) {
  const auto payload = payload_of(frame);
  if (!payload) return false;
  const auto packet = frame.subspan(payload->offset);
  const auto transport = transport_of(payload->ether_type, packet);
  if (!transport || (transport->protocol != kTcp && transport->protocol != kUdp)) return false;
  const auto segment = packet.subspan(transport->offset, transport->end - transport->offset);
  const bool tcp = transport->protocol == kTcp;
  if (segment.size() < (tcp ? 20 : 8)) return false;
  const std::size_t header = tcp ? (octet(segment, 12) >> 4) * 4 : 8;
  if (header >= segment.size()) return false;
  const auto bit = static_cast<std::size_t>(at * static_cast<double>((segment.size() - header) * 8));
  const std::size_t where = header + bit / 8;
  const unsigned flipped = 1u << bit % 8;
  const std::size_t field = tcp ? 16 : 6;
  const unsigned before = octet(segment, where);
  segment[where] = static_cast<std::byte>(before ^ flipped);
  const unsigned checksum = word(segment, field);
  if (!tcp && checksum == 0) return true;  // RFC 768: zero means no checksum
  // A byte at an even place is the upper half of its word.
  const unsigned shift = where % 2 == 0 ? 8 : 0;
  std::uint32_t sum = (~checksum & 0xffff) + (~(before << shift) & 0xffff) + ((before ^ flipped) << shift);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  sum = ~sum & 0xffff;
  put_word(segment, field, sum == 0 && !tcp ? 0xffff : sum);
  return true;
}

}  // namespace longhaul::wan
