// SPDX-License-Identifier: Apache-2.0
// The sending half of reduction: replaces repeats by references to history that the twin has, and compresses
// the rest with zstd. Keeps the history, and sends blocks again on request.
#pragma once
#include <deque>
#include <memory>
#include <optional>

#include "codecs/block_codec.h"
#include "codecs/dedup/history_ring.h"
#include "codecs/dedup/match_finder.h"
#include "codecs/keyed_hash.h"
#include "codecs/reduction/compression.h"
#include "codecs/reduction/dictionary_messages.h"
#include "codecs/reduction/shared_history.h"

namespace longhaul::reduction {

class BlockEncoder {
 public:
  BlockEncoder(std::size_t ring_bytes, std::uint64_t epoch, const BlockChecksum& checksum = {});

  // Like BlockCodec::encode().
  std::optional<BlockHeader> encode(std::uint64_t stream, const ReductionStages& stages, Bytes plain,
                                    Buffer& out);
  void forget(std::uint64_t stream);  // even if the twin's direction continues

  Result<void> on_welcome(const Welcome& message);
  Result<void> on_held(const Held& message);
  Result<void> on_need(const Need& message);
  // No later block refers to bytes sent so far; their memory is released once no unanswered block needs it.
  // The index's memory is released at once, except if the twin requests this every few bytes.
  enum class ClearedBy { owner, twin };
  void clear(ClearedBy by);

  bool has_message() const { return hello_due_ || !needed_.empty() || floor_due(); }
  std::optional<Slice> poll_message();

  // Its effort, which also decides how repeats are searched.
  Compression& compression() { return compression_; }

  EncoderCounters counters() const;
  const BlockFigures& last() const { return figures_; }

  // ---- For the disk tier.
  // Puts bytes that the twin can find for itself at the head, for blocks of this stream to refer to, and says
  // where. `load` goes out with the stream's next block, before which the twin brings the same bytes to the
  // same place. Nothing: there is no room before the horizon.
  std::optional<std::uint64_t> append_history(std::uint64_t stream, Bytes history);
  void announce_load(std::uint64_t stream, Bytes load);
  // The twin cannot load the history announced for this stream: it will never be answered, and nothing may
  // refer to it.
  void give_up(std::uint64_t stream, Interval range);
  // The repeats of the last block, and the part of them that came from disk.
  const std::vector<dedup::Copy>& copies() const { return copies_; }
  void count_from_disk(std::uint64_t bytes) {
    figures_.disk_bytes += bytes;
    counters_.bytes.disk_bytes += bytes;
  }

  // Nothing before the first block that enters the history.
  dedup::HistoryRing* ring() { return history_ ? &history_->ring : nullptr; }
  std::size_t index_bytes() const { return history_ ? history_->finder.index_bytes() : 0; }
  const SharedHistory* shared() const { return history_ ? &history_->shared : nullptr; }

 private:
  struct Flow {
    StreamTrack track;
    std::uint64_t end = 0;           // of its last block in the history; 0: none
    std::uint64_t continuation = 0;  // where the next block may continue in the history
    ZstdTrials trials;
    std::unique_ptr<Buffer> loads;
  };
  struct History {
    dedup::HistoryRing ring;
    dedup::MatchFinder finder;
    SharedHistory shared;
  };
  struct Range {
    std::uint64_t offset;
    std::uint32_t size;
  };

  Flow& flow_of(std::uint64_t stream);
  bool make_history();
  std::optional<std::uint64_t> place(Bytes plain);
  void keep_worthwhile(Interval context);
  bool floor_due() const;
  void count(const BlockHeader& header, std::size_t content_bytes, std::size_t encoded_bytes);

  BlockChecksum checksum_;
  std::size_t asked_ring_bytes_;
  std::uint64_t epoch_;
  std::size_t ring_bytes_ = 0;  // as answered by the twin
  bool hello_due_;
  bool welcomed_ = false;
  std::optional<History> history_;
  KeyedMap<std::uint64_t, Flow> flows_;
  std::vector<dedup::Copy> copies_;
  std::deque<Range> needed_;        // requested by the twin
  std::uint64_t needed_bytes_ = 0;  // ever
  std::uint64_t given_up_at_ = 0;   // the head, when something was given up last
  std::uint64_t reclaimed_ = 0;     // ring memory before this offset was given back
  Compression compression_;
  EncoderCounters counters_;  // without those of compression_
  BlockFigures figures_;
};

}  // namespace longhaul::reduction
