// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/carrier_frames.h"

#include "codecs/byte_reader.h"

namespace longhaul::link::udp {
namespace {

// A stamp that would not fit into a Duration is invalid.
constexpr std::uint64_t kMaxMicroseconds = std::uint64_t{1} << 52;

std::uint64_t microseconds(Duration time) {
  auto count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

Result<Duration> read_duration(ByteReader& in) {
  auto count = in.varint();
  if (!count || *count > kMaxMicroseconds) return LinkError::malformed_frame;
  return Duration(std::chrono::microseconds(*count));
}

Result<fec::Class> read_class(ByteReader& in) {
  auto value = in.u8();
  if (!value || *value >= fec::kClasses) return LinkError::malformed_frame;
  return static_cast<fec::Class>(*value);
}

std::size_t repair_body_size(const fec::Repair& repair) {
  return 1 + varint_size(repair.window.first) + varint_size(repair.window.count) + varint_size(repair.key) +
         repair.coded.size();
}

}  // namespace

void write_frame_head(CarrierFrameType type, std::size_t body_bytes, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(type));
  writer.varint(body_bytes);
}

// As RFC 9000, section 19.3: the first range by its length, the others by the gap before them and their
// length, both minus their smallest possible value.
void write_packet_ack(const PacketAck& ack, Buffer& out) {
  thread_local Buffer body;
  body.clear();
  ByteWriter writer(body);
  writer.varint(ack.largest().number());
  writer.varint(microseconds(ack.delay));
  writer.varint(microseconds(ack.arrival));
  const NumberRange* above = nullptr;
  for (const NumberRange& range : ack.ranges) {
    if (above) writer.varint(above->first - range.last - 2);
    writer.varint(range.last - range.first);
    above = &range;
  }
  write_frame_head(CarrierFrameType::packet_ack, body.size(), out);
  append(out, body);
}

Result<PacketAck> parse_packet_ack(Bytes body) {
  ByteReader in(body);
  PacketAck ack;
  auto largest = in.varint();
  if (!largest) return LinkError::malformed_frame;
  auto delay = read_duration(in);
  if (!delay) return delay.error();
  auto arrival = read_duration(in);
  if (!arrival) return arrival.error();
  ack.delay = *delay;
  ack.arrival = *arrival;
  PacketNumber last(*largest);
  for (bool first = true; first || in.remaining(); first = false) {
    if (ack.ranges.size() == kMaxAckRanges) return LinkError::malformed_frame;
    if (!first) {
      auto hole = in.varint();
      const PacketNumber above = ack.ranges.back().first;
      if (!hole || above.number() < 2 || *hole > above.number() - 2) return LinkError::malformed_frame;
      last = above - 2 - *hole;
    }
    auto length = in.varint();
    if (!length || *length > last.number()) return LinkError::malformed_frame;
    ack.ranges.push_back({last - *length, last});
  }
  return ack;
}

void write_filler(CarrierFrameType type, std::size_t frame_bytes, Buffer& out) {
  std::size_t body = frame_bytes < 66 ? frame_bytes - 2 : frame_bytes - 3;
  if (frame_head_size(body) + body != frame_bytes) {
    // No single frame can have this size, because its length field is at the edge of its encoding.
    write_frame_head(CarrierFrameType::padding, 0, out);
    return write_filler(type, frame_bytes - 2, out);
  }
  write_frame_head(type, body, out);
  std::size_t filled = out.size();
  out.resize(filled + body);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(filled), out.end(), std::byte{0});
}

void write_path_token(CarrierFrameType type, const PathToken& token, Buffer& out) {
  write_frame_head(type, token.size(), out);
  append(out, token);
}

Result<PathToken> parse_path_token(Bytes body) {
  PathToken token;
  if (body.size() != token.size()) return LinkError::malformed_frame;
  std::copy(body.begin(), body.end(), token.begin());
  return token;
}

void write_symbol(const SymbolFrame& frame, Buffer& out) {
  write_frame_head(CarrierFrameType::symbol, 1 + varint_size(frame.id), out);
  ByteWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(frame.of));
  writer.varint(frame.id);
}

Result<SymbolFrame> parse_symbol(Bytes body) {
  ByteReader in(body);
  auto of = read_class(in);
  if (!of) return of.error();
  auto id = in.varint();
  if (!id || in.remaining()) return LinkError::malformed_frame;
  return SymbolFrame{*of, *id};
}

void write_repair(const RepairFrame& frame, Buffer& out) {
  const fec::Repair& repair = frame.repair;
  write_frame_head(CarrierFrameType::repair, repair_body_size(repair), out);
  ByteWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(frame.of));
  writer.varint(repair.window.first);
  writer.varint(repair.window.count);
  writer.varint(repair.key);
  writer.bytes(repair.coded);
}

std::size_t repair_frame_size(const RepairFrame& frame) {
  std::size_t body = repair_body_size(frame.repair);
  return frame_head_size(body) + body;
}

Result<RepairFrame> parse_repair(Bytes body) {
  ByteReader in(body);
  auto of = read_class(in);
  if (!of) return of.error();
  auto first = in.varint(), count = in.varint(), key = in.varint();
  if (!first || !count || !key || *count == 0 || *count > fec::kMaxWindow || *key >= fec::kKeys)
    return LinkError::malformed_frame;
  if (*first > fec::kMaxSymbolId - *count) return LinkError::malformed_frame;
  return RepairFrame{
      *of, {{*first, static_cast<std::uint32_t>(*count)}, static_cast<std::uint32_t>(*key), in.rest()}};
}

void write_recovered(const RecoveredNumbers& numbers, Buffer& out) {
  thread_local Buffer body;
  body.clear();
  ByteWriter writer(body);
  PacketNumber above;
  for (const PacketNumber& number : numbers) {
    writer.varint(&number == &numbers.front() ? number.number() : above - number - 1);
    above = number;
  }
  write_frame_head(CarrierFrameType::recovered, body.size(), out);
  append(out, body);
}

Result<RecoveredNumbers> parse_recovered(Bytes body) {
  ByteReader in(body);
  RecoveredNumbers numbers;
  while (in.remaining()) {
    auto value = in.varint();
    if (!value || numbers.size() == numbers.capacity()) return LinkError::malformed_frame;
    if (numbers.empty()) {
      numbers.push_back(PacketNumber(*value));
    } else {
      if (*value >= numbers.back().number()) return LinkError::malformed_frame;
      numbers.push_back(numbers.back() - 1 - *value);
    }
  }
  return numbers;
}

}  // namespace longhaul::link::udp
