// SPDX-License-Identifier: Apache-2.0
// The seam for reduction: what turns a plain block into fewer bytes and back. The link calls it for every
// block of a stream whose features ask for it; dictionaries and compressors implement it. Pure: what a codec
// has to tell its twin on the other side (held ranges, missing blocks, loads) it puts out as messages, which
// the session carries.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"
#include "codecs/reduction/counters.h"
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

// What may be done to the bytes of one flow. Without dedup_memory the flow is on its own: nothing of it is
// referred to by others, and nothing of others by it; compression sees only what the flow itself sent.
struct ReductionStages {
  bool dedup_memory = true;
  bool dedup_disk = true;
  bool compression = true;
};

class BlockCodec {
 public:
  virtual ~BlockCodec() = default;

  // Appends the encoded form of `plain`, at most kMaxBlockPlainBytes, to `out` and says how it was made. The
  // blocks of a stream are encoded in the order in which the twin will decode them. Nothing: send the bytes
  // plain.
  virtual std::optional<BlockHeader> encode(std::uint64_t stream, const ReductionStages& stages, Bytes plain,
                                            Buffer& out) = 0;

  // Gives the plain bytes back, verified by the checksum. Nothing: not yet; the stream keeps the block, and
  // all that follows it, and asks again when poll_ready() names it. An error resets the stream.
  virtual Result<std::optional<Slice>> decode(std::uint64_t stream, const BlockHeader& header,
                                              Bytes encoded) = 0;
  // A stream whose waiting block should be tried again.
  virtual std::optional<std::uint64_t> poll_ready() { return std::nullopt; }

  // The stream is over in both directions, or was reset: nothing of it will be encoded or asked for again.
  virtual void forget(std::uint64_t /*stream*/) {}
  // Nothing more of it is encoded, and what was may never be looked at; the other direction goes on.
  virtual void stop_encoding(std::uint64_t /*stream*/) {}

  // A message of the twin; an error is a breach of the protocol and ends the session.
  virtual Result<void> on_message(Bytes message) = 0;
  // Whether poll_message() has something that should not wait for other traffic.
  virtual bool has_message() const = 0;
  virtual std::optional<Slice> poll_message() = 0;

  // Of the last encode() that gave a header, and the last decode() that gave bytes, for whoever counts per
  // flow.
  virtual const reduction::BlockFigures& last_encoded() const { return kNoFigures; }
  virtual const reduction::BlockFigures& last_decoded() const { return kNoFigures; }

  // What the line takes, bytes per second: a slow one is worth more effort. 0: not known.
  virtual void set_line_rate(std::uint64_t /*bytes_per_second*/) {}

 private:
  static constexpr reduction::BlockFigures kNoFigures{};
};

// XXH3-64, as every block carries it.
std::uint64_t block_checksum(Bytes plain);

}  // namespace longhaul
