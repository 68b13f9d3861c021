// SPDX-License-Identifier: Apache-2.0
// The interface of data reduction: encodes a plain block to fewer bytes and decodes it. The link calls it for
// every block of a stream whose features enable it; dictionaries and compressors implement it. Pure: the
// session carries a codec's messages for its twin on the other side (held ranges, missing blocks, loads).
#pragma once
#include <array>
#include <optional>
#include <span>

#include "codecs/byte_writer.h"
#include "codecs/reduction/counters.h"
#include "codecs/result.h"
#include "codecs/slice.h"

namespace longhaul {

// The header of a block on the wire. The checksum is BlockChecksum of the plain bytes.
struct BlockHeader {
  std::uint8_t codec = 0;         // which stages were used, in the codec's own numbering
  std::uint32_t plain_bytes = 0;  // 1 to kMaxBlockPlainBytes
  std::uint64_t checksum = 0;
  std::uint64_t ring_offset = 0;  // position of the plain bytes in the shared history; 0: none
};

inline constexpr std::size_t kMaxBlockPlainBytes = 64 * 1024;

// XXH3-64 with a secret that only the two ends of a session know. Peers that share dictionaries could
// otherwise choose bytes that pass the check in place of another peer's (XXH3 without a secret is not
// collision resistant).
class BlockChecksum {
 public:
  static constexpr std::size_t kSecretBytes = 192;
  BlockChecksum();  // a publicly known secret: for tests, and for codecs without a twin
  explicit BlockChecksum(std::span<const std::byte, kSecretBytes> secret);
  BlockChecksum(const BlockChecksum&) = default;
  BlockChecksum& operator=(const BlockChecksum&) = default;
  ~BlockChecksum();  // wipes the secret

  std::uint64_t of(Bytes plain) const;

 private:
  std::array<std::byte, kSecretBytes> secret_;
};

// How the bytes of one flow may be reduced. Without dedup_memory the flow is isolated: it shares no
// references with other flows, and is compressed with its own bytes alone as context.
struct ReductionStages {
  bool dedup_memory = true;
  bool dedup_disk = true;
  bool compression = true;
};

class BlockCodec {
 public:
  virtual ~BlockCodec() = default;

  // Appends the encoded form of `plain`, at most kMaxBlockPlainBytes, to `out` and returns its header. The
  // blocks of a stream are encoded in the order in which the twin will decode them. If it returns nullopt,
  // the caller sends the bytes plain.
  virtual std::optional<BlockHeader> encode(std::uint64_t stream, const ReductionStages& stages, Bytes plain,
                                            Buffer& out) = 0;

  // Returns the plain bytes, verified by the checksum, or nullopt if decoding is not possible yet: then the
  // stream keeps the block and everything after it, and retries when poll_ready() returns it. An error resets
  // the stream.
  virtual Result<std::optional<Slice>> decode(std::uint64_t stream, const BlockHeader& header,
                                              Bytes encoded) = 0;
  // Returns a stream whose waiting block should be tried again.
  virtual std::optional<std::uint64_t> poll_ready() { return std::nullopt; }

  // The stream has ended in both directions, or was reset: its blocks will no longer be encoded or requested.
  virtual void forget(std::uint64_t /*stream*/) {}
  // No more of the stream's blocks will be encoded, and encoded ones may never be decoded; the other
  // direction continues.
  virtual void stop_encoding(std::uint64_t /*stream*/) {}

  // A message of the twin; an error is a protocol violation and ends the session.
  virtual Result<void> on_message(Bytes message) = 0;
  // Whether poll_message() has a message that should not wait for other traffic.
  virtual bool has_message() const = 0;
  virtual std::optional<Slice> poll_message() = 0;

  // Figures of the last encode() that returned a header, and of the last decode() that returned bytes, for
  // counters per flow.
  virtual const reduction::BlockFigures& last_encoded() const { return kNoFigures; }
  virtual const reduction::BlockFigures& last_decoded() const { return kNoFigures; }

  // The rate of the line in bytes per second: a slow line justifies more effort. 0: unknown.
  virtual void set_line_rate(std::uint64_t /*bytes_per_second*/) {}

 private:
  static constexpr reduction::BlockFigures kNoFigures{};
};

}  // namespace longhaul
