// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/encoded_block.h"

#include "codecs/byte_reader.h"
#include "codecs/reduction/deflated.h"
#include "codecs/reduction/errors.h"
#include "codecs/zstd_stage.h"

namespace longhaul::reduction {
namespace {

constexpr std::uint8_t kKnownBits =
    kInRing | kReferences | kZstd | kLoads | kContext | kOpened;  // kFollows is resolved
constexpr std::uint8_t kNeedRing = kReferences | kLoads | kContext | kOpened;

bool plausible(const BlockHeader& header) {
  if (header.codec & ~kKnownBits) return false;
  if (header.plain_bytes == 0 || header.plain_bytes > kMaxBlockPlainBytes) return false;
  if ((header.codec & (kContext | kOpened)) && !(header.codec & kZstd)) return false;
  if (header.codec & kInRing)
    return header.ring_offset >= kRingStart && header.ring_offset <= kMaxVarint - header.plain_bytes;
  return header.ring_offset == 0 && !(header.codec & kNeedRing);
}

}  // namespace

void write_encoded_fields(std::uint8_t codec, const EncodedBlock& block, Buffer& out) {
  ByteWriter writer(out);
  if (codec & kLoads) writer.sized(block.loads);
  if (codec & kContext) {
    writer.varint(block.context_distance);
    writer.varint(block.context_bytes);
  }
  if ((codec & kZstd) && (codec & (kReferences | kOpened))) writer.varint(block.content_bytes);
}

Result<EncodedBlock> parse_encoded(const BlockHeader& header, Bytes encoded) {
  if (!plausible(header)) return Error::malformed_block;
  EncodedBlock block;
  ByteReader in(encoded);
  if (header.codec & kLoads) {
    auto loads = in.sized();
    if (!loads || loads->empty()) return Error::malformed_block;
    block.loads = *loads;
  }
  if (header.codec & kContext) {
    auto distance = in.varint();
    auto bytes = in.varint();
    if (!distance || !bytes || *bytes == 0 || *bytes > kMaxZstdContext) return Error::malformed_block;
    if (*distance > header.ring_offset - kRingStart || *bytes > header.ring_offset - kRingStart - *distance)
      return Error::malformed_block;
    block.context_distance = *distance;
    block.context_bytes = static_cast<std::uint32_t>(*bytes);
  }
  // Honest references are never longer than the bytes themselves: otherwise the twin would have sent those.
  block.content_bytes = header.plain_bytes;
  if (header.codec & (kReferences | kOpened)) {
    std::uint64_t size = in.remaining();
    if (header.codec & kZstd) {
      auto content = in.varint();
      if (!content) return Error::malformed_block;
      size = *content;
    }
    if (size == 0 || size > (header.codec & kOpened ? kMaxOpenedBytes : header.plain_bytes))
      return Error::malformed_block;
    block.content_bytes = static_cast<std::uint32_t>(size);
  }
  block.body = in.rest();
  // Unpacking pays only if the result is smaller than without it.
  std::size_t least = std::min(block.content_bytes, header.plain_bytes);
  bool fits = header.codec & kZstd ? !block.body.empty() && block.body.size() < least
                                   : block.body.size() == block.content_bytes;
  if (!fits) return Error::malformed_block;
  return block;
}

}  // namespace longhaul::reduction
