// SPDX-License-Identifier: Apache-2.0
// Headers written byte by byte; two bytes of the payload are chosen so that the checksum becomes what is
// wanted.
#include "tools/probe/packet.h"

#include <algorithm>

namespace longhaul::probe {
namespace {

constexpr std::uint16_t kEchoChecksum = 0x4c48;  // any constant would do
constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kEchoHeader = 8;
constexpr std::size_t kTcpHeader = 20;
constexpr std::size_t kBalance = 2;  // bytes of payload that balance the checksum

void put16(std::vector<std::byte>& out, std::size_t at, std::uint32_t value) {
  out[at] = static_cast<std::byte>(value >> 8);
  out[at + 1] = static_cast<std::byte>(value);
}
void put32(std::vector<std::byte>& out, std::size_t at, std::uint32_t value) {
  put16(out, at, value >> 16);
  put16(out, at + 2, value);
}

std::uint16_t add(std::uint16_t a, std::uint16_t b) {
  const std::uint32_t sum = std::uint32_t{a} + b;
  return static_cast<std::uint16_t>((sum & 0xffff) + (sum >> 16));
}

// RFC 793 section 3.1, RFC 8200 section 8.1; ICMP for IPv4 has none.
std::uint16_t pseudo_header(const Flow& flow, std::size_t size) {
  if (flow.family == Family::v4 && flow.kind == Kind::icmp) return 0;
  const std::size_t bytes = flow.family == Family::v4 ? 4 : 16;
  std::uint16_t sum = ones_sum(Bytes(flow.from).first(bytes));
  sum = add(sum, ones_sum(Bytes(flow.to).first(bytes)));
  sum = add(sum, static_cast<std::uint16_t>(protocol_of(flow.family, flow.kind)));
  return add(sum, static_cast<std::uint16_t>(size));
}

void set_checksum(const Flow& flow, std::vector<std::byte>& packet, std::size_t at) {
  put16(packet, at, 0);
  const std::uint16_t sum = add(ones_sum(packet), pseudo_header(flow, packet.size()));
  put16(packet, at, static_cast<std::uint16_t>(~sum));
}

// Chooses the word at `balance` so that the checksum at `at` is `wanted`.
void balance_checksum(const Flow& flow, std::vector<std::byte>& packet, std::size_t at, std::uint16_t wanted,
                      std::size_t balance) {
  put16(packet, at, wanted);
  put16(packet, balance, 0);
  const std::uint16_t sum = add(ones_sum(packet), pseudo_header(flow, packet.size()));
  put16(packet, balance, static_cast<std::uint16_t>(~sum));
}

// Bytes that do not compress, the same for every probe of one size.
void fill(std::vector<std::byte>& packet, std::size_t from) {
  std::uint32_t state = 0x9e3779b9;
  for (std::size_t at = from; at < packet.size(); ++at) {
    state = state * 1664525 + 1013904223;
    packet[at] = static_cast<std::byte>(state >> 24);
  }
}

std::size_t payload_room(const Flow& flow, unsigned ip_bytes, std::size_t least) {
  const unsigned header = ip_header_bytes(flow.family);
  return std::max<std::size_t>(least, ip_bytes > header ? ip_bytes - header : 0);
}

}  // namespace

std::uint16_t ones_sum(Bytes bytes, std::uint32_t start) {
  std::uint64_t sum = start;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2)
    sum += std::to_integer<std::uint32_t>(bytes[at]) << 8 | std::to_integer<std::uint32_t>(bytes[at + 1]);
  if (bytes.size() % 2 == 1) sum += std::to_integer<std::uint32_t>(bytes.back()) << 8;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

unsigned least_bytes(Family family, Kind kind) {
  const unsigned header = kind == Kind::tcp ? 40 : 12;  // TCP's with its options
  return (ip_header_bytes(family) + header + 7) / 8 * 8;
}

std::vector<std::byte> make_probe(const Flow& flow, std::uint16_t id, unsigned ip_bytes) {
  if (flow.kind == Kind::tcp) {
    const auto mss = static_cast<std::uint16_t>(flow.family == Family::v4 ? 1460 : 1440);
    return make_syn(flow, id, {mss, 7, true, Timestamps{sequence_of(id), 0}, {}}, ip_bytes);
  }
  std::vector<std::byte> packet(payload_room(flow, ip_bytes, kUdpHeader + kBalance));
  if (flow.kind == Kind::udp) {
    put16(packet, 0, flow.from_port);
    put16(packet, 2, flow.to_port);
    put16(packet, 4, static_cast<std::uint32_t>(packet.size()));
    fill(packet, kUdpHeader + kBalance);
    balance_checksum(flow, packet, 6, id, kUdpHeader);
  } else {
    packet[0] =
        static_cast<std::byte>(flow.family == Family::v4 ? 8 : 128);  // echo request, RFC 792 and 4443
    put16(packet, 4, flow.from_port);
    put16(packet, 6, id);
    fill(packet, kEchoHeader + kBalance);
    balance_checksum(flow, packet, 2, kEchoChecksum, kEchoHeader);
  }
  return packet;
}

std::vector<std::byte> make_syn(const Flow& flow, std::uint16_t id, const TcpOptions& options,
                                unsigned ip_bytes) {
  const std::vector<std::byte> written = write_tcp_options(options);
  const std::size_t header = kTcpHeader + written.size();
  std::vector<std::byte> packet(payload_room(flow, ip_bytes, header));
  put16(packet, 0, flow.from_port);
  put16(packet, 2, flow.to_port);
  put32(packet, 4, sequence_of(id));
  packet[12] = static_cast<std::byte>(header / 4 << 4);
  packet[13] = std::byte{0x02};  // SYN
  put16(packet, 14, 64240);
  std::copy(written.begin(), written.end(), packet.begin() + kTcpHeader);
  fill(packet, header);
  set_checksum(flow, packet, 16);
  return packet;
}

std::vector<std::byte> make_reset(const Flow& flow, std::uint32_t sequence) {
  std::vector<std::byte> packet(kTcpHeader);
  put16(packet, 0, flow.from_port);
  put16(packet, 2, flow.to_port);
  put32(packet, 4, sequence);
  packet[12] = std::byte{5 << 4};
  packet[13] = std::byte{0x04};  // RST
  set_checksum(flow, packet, 16);
  return packet;
}

}  // namespace longhaul::probe
