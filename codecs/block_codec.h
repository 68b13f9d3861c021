// SPDX-License-Identifier: Apache-2.0
// The seam for reduction: what turns a plain block into fewer bytes and back. The link calls it for every
// block of a stream whose features ask for it; dictionaries and compressors implement it. Pure: what a codec
// has to tell its twin on the other side (held ranges, missing blocks, loads) it puts out as messages, which
// the session carries.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"
#include "codecs/result.h"
#include "codecs/slice.h"

namespace longhaul {

// What stands before a block on the wire. The checksum is XXH3-64 of the plain bytes.
struct BlockHeader {
  std::uint8_t codec = 0;         // which stages were used, the codec's own numbering
  std::uint32_t plain_bytes = 0;  // 1 to kMaxBlockPlainBytes
  std::uint64_t checksum = 0;
  std::uint64_t ring_offset = 0;  // where the plain bytes stand in the shared history; 0 where there is none
};

inline constexpr std::size_t kMaxBlockPlainBytes = 64 * 1024;

class BlockCodec {
 public:
  virtual ~BlockCodec() = default;

  // Appends the encoded form of `plain` to `out` and says how it was made. Nothing: send the bytes plain.
  virtual std::optional<BlockHeader> encode(std::uint64_t stream, Bytes plain, Buffer& out) = 0;

  // Gives the plain bytes back. The caller compares the checksum; an error resets the stream.
  virtual Result<Slice> decode(std::uint64_t stream, const BlockHeader& header, Bytes encoded) = 0;

  // A message of the twin, and the next message for it.
  virtual void on_message(Bytes message) = 0;
  virtual std::optional<Slice> poll_message() = 0;
};

// XXH3-64, as every block carries it.
std::uint64_t block_checksum(Bytes plain);

}  // namespace longhaul
