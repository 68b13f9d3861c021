// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/dictionary_messages.h"

#include "codecs/block_codec.h"
#include "codecs/byte_reader.h"
#include "codecs/reduction/errors.h"

namespace longhaul::reduction {
namespace {

enum Type : std::uint8_t { hello = 1, welcome, held, need, plain, gone, clear, floor };

std::optional<Message> parse_hello(ByteReader& in) {
  auto version = in.varint();
  auto epoch = in.fixed64();
  auto ring = in.varint();
  if (!version || !epoch || !ring) return std::nullopt;
  in.bytes(in.remaining());  // reserved for additions of later versions
  return Hello{*version, *epoch, *ring};
}

std::optional<Message> parse_welcome(ByteReader& in) {
  auto version = in.varint();
  auto ring = in.varint();
  if (!version || !ring) return std::nullopt;
  auto deflates = in.remaining() >= 8 ? in.fixed64() : std::nullopt;  // earlier versions omit it
  in.bytes(in.remaining());
  return Welcome{*version, *ring, deflates.value_or(0)};
}

std::optional<Message> parse_held(ByteReader& in) {
  Held message;
  std::uint64_t end = 0;
  do {
    auto gap = in.varint();
    auto length = in.varint();
    if (!gap || !length || *length == 0 || (*gap == 0 && !message.ranges.empty())) return std::nullopt;
    if (*gap > kMaxVarint - end || *length > kMaxVarint - end - *gap) return std::nullopt;
    if (message.ranges.size() == kMaxHeldRanges) return std::nullopt;
    message.ranges.push_back({end + *gap, end + *gap + *length});
    end = message.ranges.back().end;
  } while (in.remaining());
  return message;
}

std::optional<Message> parse_need(ByteReader& in) {
  auto offset = in.varint();
  auto size = in.varint();
  auto reason = in.u8();
  if (!offset || !size || !reason || *size == 0 || *size > kMaxBlockPlainBytes || *reason > 1)
    return std::nullopt;
  return Need{*offset, static_cast<std::uint32_t>(*size), static_cast<Need::Reason>(*reason)};
}

std::optional<Message> parse_plain(ByteReader& in) {
  auto offset = in.varint();
  if (!offset || in.remaining() == 0 || in.remaining() > kMaxBlockPlainBytes) return std::nullopt;
  return PlainBlock{*offset, *in.bytes(in.remaining())};
}

template <class T>
std::optional<Message> parse_offset(ByteReader& in) {
  auto offset = in.varint();
  if (!offset) return std::nullopt;
  return T{*offset};
}

std::optional<Message> parse_body(std::uint8_t type, ByteReader& in) {
  switch (type) {
    case hello:
      return parse_hello(in);
    case welcome:
      return parse_welcome(in);
    case held:
      return parse_held(in);
    case need:
      return parse_need(in);
    case plain:
      return parse_plain(in);
    case gone:
      return parse_offset<Gone>(in);
    case clear:
      return Clear{};
    case floor:
      return parse_offset<Floor>(in);
    default:
      return OtherMessage{type, *in.bytes(in.remaining())};
  }
}

}  // namespace

Result<Message> parse_message(Bytes message) {
  ByteReader in(message);
  auto type = in.u8();
  if (!type) return Error::malformed_message;
  auto parsed = parse_body(*type, in);
  if (!parsed || in.remaining()) return Error::malformed_message;
  return std::move(*parsed);
}

void write_message(const Hello& message, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(hello);
  writer.varint(message.version);
  writer.fixed64(message.epoch);
  writer.varint(message.ring_bytes);
}

void write_message(const Welcome& message, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(welcome);
  writer.varint(message.version);
  writer.varint(message.ring_bytes);
  if (message.deflates) writer.fixed64(message.deflates);
}

void write_message(const Held& message, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(held);
  std::uint64_t end = 0;
  for (Interval range : message.ranges) {
    writer.varint(range.begin - end);
    writer.varint(range.size());
    end = range.end;
  }
}

void write_message(const Need& message, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(need);
  writer.varint(message.ring_offset);
  writer.varint(message.size);
  writer.u8(static_cast<std::uint8_t>(message.reason));
}

void write_message(const PlainBlock& message, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(plain);
  writer.varint(message.ring_offset);
  writer.bytes(message.plain);
}

void write_message(const Gone& message, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(gone);
  writer.varint(message.ring_offset);
}

void write_message(const Clear&, Buffer& out) { ByteWriter(out).u8(clear); }

void write_message(const Floor& message, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(floor);
  writer.varint(message.ring_offset);
}

}  // namespace longhaul::reduction
