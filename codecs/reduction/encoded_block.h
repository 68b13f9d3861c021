// SPDX-License-Identifier: Apache-2.0
// The fields between a block's head and its bytes: the codec bits and the fields that they announce
// (PROTOCOL.md, section "Reduction"). Only the format.
#pragma once
#include "codecs/block_codec.h"
#include "codecs/dedup/history_ring.h"

namespace longhaul::reduction {

using dedup::kRingStart;
inline constexpr std::size_t kMinRingBytes = 16u << 20;

enum CodecBit : std::uint8_t {
  kInRing = 1,      // the plain bytes enter the history at ring_offset
  kReferences = 2,  // the content is tokens and literals, not the plain bytes
  kZstd = 4,        // the content is compressed
  kLoads = 8,       // the decoder first loads history from disk
  kContext = 16,    // zstd had a piece of the history as context
  kOpened = 64,     // and before that its deflate streams were unpacked
  kFollows = 32,    // ring_offset counts from the end of the stream's previous block, and is mostly 0
};

struct EncodedBlock {
  Bytes loads;                         // with kLoads: for the disk tier
  std::uint64_t context_distance = 0;  // with kContext: distance from its end to ring_offset
  std::uint32_t context_bytes = 0;
  std::uint32_t content_bytes = 0;  // before compression, unpacked
  Bytes body;                       // to the end
};

// Appends everything except the body, according to `codec`.
void write_encoded_fields(std::uint8_t codec, const EncodedBlock& block, Buffer& out);

// Returns an error if it can never be a block, whatever the history holds. `header` has its ring offset,
// without kFollows. Lengths and offsets are checked against the head and each other, not yet against a ring.
Result<EncodedBlock> parse_encoded(const BlockHeader& header, Bytes encoded);

}  // namespace longhaul::reduction
