// SPDX-License-Identifier: Apache-2.0
// Reduction of one session: two dictionaries, one per direction, and zstd for their output. Combines the
// encoder and the decoder; proxy/link/PROTOCOL.md has the wire formats. The session carries blocks and
// messages.
#pragma once
#include <memory>

#include "codecs/block_codec.h"
#include "codecs/reduction/counters.h"
#include "codecs/reduction/peer_segments.h"

namespace longhaul::reduction {

class BlockEncoder;
class BlockDecoder;
class DiskTier;

struct Options {
  // History of what this side sends; the twin may accept less. Rounded down to 64 KiB; below 16 MiB: none,
  // and only zstd is used. Memory is touched as it fills: a session that carries no data costs nothing.
  std::size_t ring_bytes = 256u << 20;
  // Limit of what this side stores of the bytes that the twin sends.
  std::size_t peer_ring_bytes = 256u << 20;
  // Random: identifies this session's history for as long as any of it is stored.
  std::uint64_t epoch = 0;
  // With a secret of the session's two ends.
  BlockChecksum checksum{};
  // The site's segments on disk, for all sessions; they outlive this one. Null if there are none.
  SegmentStore* store = nullptr;
  // The two sites: names of segments begin with these, and so the segments belong to both.
  SiteId site{}, twin_site{};
  // Further segments that the twin may read: of its other keys, and of peers that share with it.
  SegmentRights rights;
};

class Reduction final : public BlockCodec {
 public:
  explicit Reduction(const Options& options);
  ~Reduction() override;

  std::optional<BlockHeader> encode(std::uint64_t stream, const ReductionStages& stages, Bytes plain,
                                    Buffer& out) override;
  Result<std::optional<Slice>> decode(std::uint64_t stream, const BlockHeader& header,
                                      Bytes encoded) override;
  std::optional<std::uint64_t> poll_ready() override;
  void forget(std::uint64_t stream) override;
  void stop_encoding(std::uint64_t stream) override;
  Result<void> on_message(Bytes message) override;
  bool has_message() const override;
  std::optional<Slice> poll_message() override;
  void set_line_rate(std::uint64_t bytes_per_second) override;
  // The processor is slower than the line: zstd's effort is this many steps below the one that suits the
  // line.
  void set_relief(unsigned steps);

  // Drops both histories, here and at the twin, and the twin's segments of this link; running streams
  // continue. Afterwards the owner may clear this side's disk.
  void clear();
  // How many bytes the twin dropped from its disk; nullopt until it has responded.
  std::optional<std::uint64_t> cleared_by_twin() const;
  // Nothing was sent for a while (about a second): the remaining history may be written to disk.
  void on_quiet();
  // The session is about to end: the remaining history is written to disk, on both sides.
  void finish();
  // Whether all messages were sent, and the twin has finished.
  bool finished() const;
  // The rights of the twin have changed: it loses segments that are no longer included.
  void set_rights(SegmentRights rights);
  // Work deferred by messages and quiet moments: the owner calls work() while has_work(), and serves others
  // in between.
  bool has_work() const;
  void work();

  Counters counters() const;
  // The size of both histories, and of the index.
  std::uint64_t memory_bytes() const;
  // Figures of the last encode() that returned a header and the last decode() that returned bytes: the caller
  // knows to which stream the block belongs.
  const BlockFigures& last_encoded() const;
  const BlockFigures& last_decoded() const;

  // For tests that damage a history, and for the disk tier.
  BlockEncoder& encoder() { return *encoder_; }
  BlockDecoder& decoder() { return *decoder_; }

 private:
  std::unique_ptr<BlockEncoder> encoder_;
  std::unique_ptr<BlockDecoder> decoder_;
  std::unique_ptr<DiskTier> disk_;           // null without a store
  std::uint64_t decoded_at_last_quiet_ = 0;  // blocks
};

}  // namespace longhaul::reduction
