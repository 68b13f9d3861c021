// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/disk_messages.h"

#include <cstring>

#include "codecs/reduction/encoded_block.h"
#include "codecs/reduction/errors.h"
#include "codecs/reduction/segments.h"

namespace longhaul::reduction {
namespace {

ByteWriter begin(DiskMessage type, Buffer& message) {
  ByteWriter writer(message);
  writer.u8(static_cast<std::uint8_t>(type));
  return writer;
}

}  // namespace

void write_load(const Load& load, Buffer& out) {
  ByteWriter writer(out);
  writer.fixed64(load.segment);
  writer.varint(load.offset);
  writer.varint(load.length);
  writer.varint(load.ring_offset);
}

Result<std::vector<Load>> parse_loads(Bytes loads, std::uint64_t before) {
  std::vector<Load> parsed;
  std::uint64_t total = 0;
  for (ByteReader in(loads); in.remaining();) {
    auto id = in.fixed64();
    auto offset = in.varint(), length = in.varint(), ring_offset = in.varint();
    if (!id || !offset || !length || !ring_offset || *length == 0 || *length > kLoadBytes ||
        *offset > kMaxSegmentBytes || *ring_offset < kRingStart || *ring_offset + *length > before)
      return Error::malformed_block;
    total += *length;
    if (parsed.size() == kMaxLoads || total > kMaxLoadedBytes) return Error::malformed_block;
    parsed.push_back(
        {*id, static_cast<std::uint32_t>(*offset), static_cast<std::uint32_t>(*length), *ring_offset});
  }
  return parsed;
}

Slice sealed_message(const SealedRange& range) {
  Buffer message;
  ByteWriter writer = begin(DiskMessage::sealed, message);
  writer.varint(range.first);
  writer.varint(range.length);
  writer.bytes(range.digest);
  return Slice::copy_of(message);
}

Result<SealedRange> parse_sealed(Bytes body) {
  ByteReader in(body);
  auto first = in.varint(), length = in.varint();
  auto digest = in.bytes(16);
  if (!first || !length || !digest || *length < kMinSealedBytes || *length > kMaxSegmentBytes)
    return Error::malformed_message;
  SealedRange range{.first = *first, .length = static_cast<std::uint32_t>(*length)};
  std::memcpy(range.digest.data(), digest->data(), digest->size());
  return range;
}

Slice cannot_message(const Load& load) {
  Buffer message;
  ByteWriter writer = begin(DiskMessage::cannot, message);
  writer.fixed64(load.segment);
  writer.varint(load.ring_offset);
  writer.varint(load.length);
  return Slice::copy_of(message);
}

Result<Load> parse_cannot(Bytes body) {
  ByteReader in(body);
  auto id = in.fixed64();
  auto offset = in.varint(), length = in.varint();
  if (!id || !offset || !length || *length > kLoadBytes) return Error::malformed_message;
  return Load{.segment = *id, .length = static_cast<std::uint32_t>(*length), .ring_offset = *offset};
}

Slice forgotten_message(std::uint64_t bytes) {
  Buffer message;
  begin(DiskMessage::forgotten, message).varint(bytes);
  return Slice::copy_of(message);
}

Result<std::uint64_t> parse_forgotten(Bytes body) {
  ByteReader in(body);
  auto bytes = in.varint();
  if (!bytes) return Error::malformed_message;
  return *bytes;
}

Slice plain_message(DiskMessage type) {
  Buffer message;
  begin(type, message);
  return Slice::copy_of(message);
}

}  // namespace longhaul::reduction
