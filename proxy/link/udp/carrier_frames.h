// SPDX-License-Identifier: Apache-2.0
// The frames between two UDP carriers, in addition to the session's (PROTOCOL.md, section 12): parses and
// writes them, without state.
#pragma once
#include <array>
#include <optional>

#include "codecs/byte_writer.h"
#include "codecs/result.h"
#include "fec/controller.h"
#include "fec/symbol.h"
#include "proxy/link/udp/packet_ack.h"

namespace longhaul::link::udp {

enum class CarrierFrameType : std::uint8_t {
  packet_ack = 0x20,
  probe = 0x21,
  path_challenge = 0x22,
  path_response = 0x23,
  symbol = 0x24,
  repair = 0x25,
  recovered = 0x26,
  padding = 0x27,
};
// Types from 0x20 to 0x2f belong to carriers; a session never sees them.
constexpr bool is_carrier_frame(std::byte type) { return (std::to_integer<unsigned>(type) & 0xf0) == 0x20; }

// The frame head before a body of `body_bytes`.
void write_frame_head(CarrierFrameType type, std::size_t body_bytes, Buffer& out);
constexpr std::size_t frame_head_size(std::size_t body_bytes) { return 1 + varint_size(body_bytes); }

void write_packet_ack(const PacketAck& ack, Buffer& out);
Result<PacketAck> parse_packet_ack(Bytes body);

// A frame of exactly `frame_bytes` (at least 2) without content.
void write_filler(CarrierFrameType type, std::size_t frame_bytes, Buffer& out);

using PathToken = std::array<std::byte, 8>;
void write_path_token(CarrierFrameType type, const PathToken& token, Buffer& out);
Result<PathToken> parse_path_token(Bytes body);

// The rest of the packet is a source symbol of this class.
struct SymbolFrame {
  fec::Class of = fec::Class::interactive;
  fec::SymbolId id = 0;
};
void write_symbol(const SymbolFrame& frame, Buffer& out);
Result<SymbolFrame> parse_symbol(Bytes body);

struct RepairFrame {
  fec::Class of = fec::Class::interactive;
  fec::Repair repair;  // borrows from the parsed bytes
};
void write_repair(const RepairFrame& frame, Buffer& out);
std::size_t repair_frame_size(const RepairFrame& frame);
Result<RepairFrame> parse_repair(Bytes body);
// A packet with a repair exceeds the largest of the packets that it protects by at most so many bytes.
inline constexpr std::size_t kRepairRoom = 20;

// Numbers of packets that did not arrive and whose content was restored, descending. The frame is not
// repeated if it is lost: then their content is sent again unnecessarily.
using RecoveredNumbers = boost::container::static_vector<PacketNumber, 64>;
void write_recovered(const RecoveredNumbers& numbers, Buffer& out);
Result<RecoveredNumbers> parse_recovered(Bytes body);

}  // namespace longhaul::link::udp
