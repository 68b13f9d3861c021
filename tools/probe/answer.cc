// SPDX-License-Identifier: Apache-2.0
// Every offset is checked against what is there; packets about other flows are ignored.
#include "tools/probe/answer.h"

#include <algorithm>

#include "tools/probe/network_order.h"

namespace longhaul::probe {
namespace {

struct Split {
  Bytes payload;
  std::uint8_t protocol = 0;
  Bytes to;
};

std::optional<Split> split_v4(Bytes packet) {
  if (packet.size() < 20 || byte_at(packet, 0) >> 4 != 4) return std::nullopt;
  const std::size_t header = std::size_t{byte_at(packet, 0)} % 16 * 4;
  if (header < 20 || packet.size() < header) return std::nullopt;
  if ((word_at(packet, 6) & 0x1fff) != 0) return std::nullopt;  // a later fragment has no header to read
  return Split{packet.subspan(header), byte_at(packet, 9), packet.subspan(16, 4)};
}

std::optional<Split> split_v6(Bytes packet) {
  if (packet.size() < 40 || byte_at(packet, 0) >> 4 != 6) return std::nullopt;
  return Split{packet.subspan(40), byte_at(packet, 6), packet.subspan(24, 16)};
}

// The number of the quoted probe, if it is one of this flow.
std::optional<std::uint16_t> quoted_id(const Flow& flow, Bytes quoted) {
  if (quoted.size() < 8) return std::nullopt;
  switch (flow.kind) {
    case Kind::udp:
      if (word_at(quoted, 0) != flow.from_port || word_at(quoted, 2) != flow.to_port) return std::nullopt;
      return word_at(quoted, 6);
    case Kind::icmp:
      if (byte_at(quoted, 0) != (flow.family == Family::v4 ? 8 : 128)) return std::nullopt;
      if (word_at(quoted, 4) != flow.from_port) return std::nullopt;
      return word_at(quoted, 6);
    case Kind::tcp:
      if (word_at(quoted, 0) != flow.from_port || word_at(quoted, 2) != flow.to_port) return std::nullopt;
      return word_at(quoted, 4);
  }
  return std::nullopt;
}

// RFC 792 and 1812 section 5.2.7.1 for IPv4, RFC 4443 section 3 for IPv6.
std::optional<What> meaning(Family family, std::uint8_t type, std::uint8_t code) {
  if (family == Family::v4) {
    if (type == 11) return code == 0 ? std::optional(What::expired) : std::nullopt;
    if (type != 3) return std::nullopt;
    if (code == 3) return What::reached;
    if (code == 4) return What::too_big;
    if (code == 9 || code == 10 || code == 13) return What::prohibited;
    return What::unreachable;
  }
  if (type == 3) return code == 0 ? std::optional(What::expired) : std::nullopt;
  if (type == 2) return What::too_big;
  if (type != 1) return std::nullopt;
  if (code == 4) return What::reached;
  if (code == 1 || code == 5) return What::prohibited;
  return What::unreachable;
}

}  // namespace

std::optional<Answer> read_icmp(const Flow& flow, Bytes packet) {
  Answer answer;
  Bytes message = packet;
  const bool v4 = flow.family == Family::v4;
  if (v4) {
    const auto outer = split_v4(packet);
    if (!outer || outer->protocol != IPPROTO_ICMP) return std::nullopt;
    message = outer->payload;
    answer.ip_bytes = static_cast<unsigned>(packet.size());
  } else {
    answer.ip_bytes = static_cast<unsigned>(packet.size()) + 40;
  }
  if (message.size() < 8) return std::nullopt;
  const std::uint8_t type = byte_at(message, 0);
  if (type == (v4 ? 0 : 129)) {  // echo reply
    if (flow.kind != Kind::icmp || word_at(message, 4) != flow.from_port) return std::nullopt;
    answer.what = What::reached;
    answer.id = word_at(message, 6);
    return answer;
  }
  const auto what = meaning(flow.family, type, byte_at(message, 1));
  if (!what) return std::nullopt;
  answer.what = *what;
  if (*what == What::too_big) answer.mtu = v4 ? word_at(message, 6) : number_at(message, 4);

  const auto quoted = v4 ? split_v4(message.subspan(8)) : split_v6(message.subspan(8));
  if (!quoted || quoted->protocol != protocol_of(flow.family, flow.kind)) return std::nullopt;
  if (!std::equal(quoted->to.begin(), quoted->to.end(), flow.to.begin())) return std::nullopt;
  const auto id = quoted_id(flow, quoted->payload);
  if (!id) return std::nullopt;
  answer.id = *id;
  if (flow.kind == Kind::tcp) answer.tcp_options = read_header_options(quoted->payload);
  return answer;
}

std::optional<Answer> read_tcp(const Flow& flow, Bytes packet) {
  Answer answer;
  Bytes segment = packet;
  if (flow.family == Family::v4) {
    const auto outer = split_v4(packet);
    if (!outer || outer->protocol != IPPROTO_TCP) return std::nullopt;
    segment = outer->payload;
    answer.ip_bytes = static_cast<unsigned>(packet.size());
  } else {
    answer.ip_bytes = static_cast<unsigned>(packet.size()) + 40;
  }
  if (flow.kind != Kind::tcp || segment.size() < 20) return std::nullopt;
  if (word_at(segment, 0) != flow.to_port || word_at(segment, 2) != flow.from_port) return std::nullopt;
  answer.tcp_flags = byte_at(segment, 13);
  if ((answer.tcp_flags & kAck) == 0) return std::nullopt;
  answer.tcp_ack = number_at(segment, 8);
  // At least the SYN is acknowledged, at most what it carried: less than the 65536 that separate two probes.
  answer.id = static_cast<std::uint16_t>((answer.tcp_ack - 1) >> 16);
  answer.what = What::reached;
  answer.tcp_options = read_header_options(segment);
  return answer;
}

}  // namespace longhaul::probe
