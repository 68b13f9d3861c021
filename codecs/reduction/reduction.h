// SPDX-License-Identifier: Apache-2.0
// Reduction of one session: two dictionaries, one per direction, and zstd on what they leave. Combines the
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
  // History of what this side sends; the twin may take less. Rounded down to 64 KiB; below 16 MiB: none, then
  // only zstd is used. Memory is touched as it fills: a session that carries nothing costs nothing.
  std::size_t ring_bytes = 256u << 20;
  // The most this side keeps of what the twin sends.
  std::size_t peer_ring_bytes = 256u << 20;
  // Random: names this session's history for as long as any of it is kept.
  std::uint64_t epoch = 0;
  // With a secret of the session's two ends.
  BlockChecksum checksum{};
  // What is remembered on disk, for all sessions of the site; it outlives this one. Null: nothing is.
  SegmentStore* store = nullptr;
  // Whose encoders they are: names of segments begin with these, and so belong to the two.
  SiteId site{}, twin_site{};
  // Whose segments the twin may read beside: by its other keys, and of peers that share with it.
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
  // The processor is the narrower line: zstd tries so many steps less hard than the line is worth.
  void set_relief(unsigned steps);

  // Both histories are dropped, here and by the twin, and what the twin has on disk of what came over this
  // link; running streams go on. This side's disk is its owner's to clear, after this.
  void clear();
  // How many bytes the twin dropped from its disk; nothing as long as it has not answered.
  std::optional<std::uint64_t> cleared_by_twin() const;
  // Nothing was sent for a while (about a second): what there is may go to disk.
  void on_quiet();
  // The session is about to end: what there is goes to disk, on both sides.
  void finish();
  // All of that was said, and the twin has done its part.
  bool finished() const;
  // What the twin may read beside is another now: what is no longer in it is lost to the twin.
  void set_rights(SegmentRights rights);
  // What messages and moments of silence put off: the owner calls work() as long as there is some, and serves
  // others in between.
  bool has_work() const;
  void work();

  Counters counters() const;
  // What both histories hold, and what finding repeats takes beside that.
  std::uint64_t memory_bytes() const;
  // Of the last encode() that gave a header, the last decode() that gave bytes: whoever called it knows whose
  // block it was.
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
