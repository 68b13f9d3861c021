// SPDX-License-Identifier: Apache-2.0
// The receiving half of reduction: decodes blocks, verifies them, stores them in the history and acknowledges
// them to the twin. A block that cannot be decoded is requested again and delays only its own stream; the
// session holds back the stream's later bytes.
#pragma once
#include <deque>
#include <optional>

#include "codecs/block_codec.h"
#include "codecs/dedup/history_ring.h"
#include "codecs/interval_tree.h"
#include "codecs/keyed_hash.h"
#include "codecs/reduction/counters.h"
#include "codecs/reduction/dictionary_messages.h"
#include "codecs/reduction/encoded_block.h"

namespace longhaul::reduction {

class BlockDecoder {
 public:
  explicit BlockDecoder(std::size_t ring_limit_bytes, const BlockChecksum& checksum = {})
      : checksum_(checksum), ring_limit_bytes_(ring_limit_bytes) {}

  // Like BlockCodec::decode() and poll_ready().
  Result<std::optional<Slice>> decode(std::uint64_t stream, const BlockHeader& header, Bytes encoded);
  std::optional<std::uint64_t> poll_ready();
  void forget(std::uint64_t stream);

  Result<void> on_hello(const Hello& message);
  Result<void> on_plain(const PlainBlock& message);
  Result<void> on_gone(const Gone& message);
  Result<void> on_floor(const Floor& message);
  // Asks the twin to drop its history.
  void ask_to_clear();

  // Whether an urgent message waits.
  bool has_message() const {
    return welcome_due_ || clear_due_ || !needs_.empty() ||
           (ring_ && held_bytes_ >= ring_->size() / kHeldPerRing);
  }
  std::optional<Slice> poll_message();

  // Resolves kFollows; an error if there is no previous block.
  Result<BlockHeader> placed(std::uint64_t stream, BlockHeader header);
  // History from disk; returns false if the ring has moved past its place.
  bool bring(std::uint64_t ring_offset, Bytes history);
  // This history is not available: references to it cannot be resolved.
  void leave_out(Interval range);
  // Whether the range may become a segment: blocks delivered all of it, it is still here, and none of it was
  // requested before. If so, none of it may be requested again.
  bool take_unsealed(Interval range);

  DecoderCounters counters() const;
  const BlockFigures& last() const { return figures_; }

  // Null before the twin's HELLO.
  dedup::HistoryRing* ring() { return ring_ ? &*ring_ : nullptr; }

 private:
  // Limit of ranges that wait to be reported. An encoder never has more unanswered blocks than that
  // (SharedHistory::kMaxBlocks), so only a twin that deliberately leaves gaps reaches it; its further blocks
  // are decoded but not stored.
  static constexpr std::size_t kMaxUntold = 65'536;
  // Reports are sent with ACKs, unless a large part of the ring waits for one: an eighth of the horizon.
  static constexpr std::uint64_t kHeldPerRing = 32;

  enum class Outcome : std::uint8_t { restored, unreachable, mismatch };
  struct Waiting {
    std::uint64_t ring_offset;
    std::uint64_t checksum;
    std::uint32_t size;
    enum class State : std::uint8_t { asked, answered, failed } state;
    Slice plain;
  };

  Outcome restore(const BlockHeader& header, EncodedBlock& block, MutableBytes plain);
  enum class From { block, disk };
  void store(std::uint64_t offset, Bytes plain, From from);
  Result<std::optional<Slice>> resume(KeyedMap<std::uint64_t, Waiting>::iterator waiting,
                                      const BlockHeader& sent);
  void ask_for(const BlockHeader& header, Need::Reason reason);
  void settle(std::uint64_t ring_offset, Waiting::State state, Slice plain);
  void count(const BlockHeader& header, const EncodedBlock& block, std::size_t encoded_bytes);

  BlockChecksum checksum_;
  std::size_t ring_limit_bytes_;
  std::optional<dedup::HistoryRing> ring_;
  bool greeted_ = false, welcome_due_ = false, clear_due_ = false;
  KeyedMap<std::uint64_t, Waiting> waiting_;           // by stream
  KeyedMap<std::uint64_t, std::uint64_t> waiting_at_;  // ring offset to stream
  KeyedMap<std::uint64_t, std::uint64_t> ends_;        // of each stream's last block in the history
  std::deque<std::uint64_t> ready_;
  std::deque<Need> needs_;
  IntervalTree held_;  // not reported yet
  std::uint64_t held_bytes_ = 0;
  IntervalSet unsealed_;  // delivered by blocks, and not yet in a segment
  DecoderCounters counters_;
  BlockFigures figures_;
};

}  // namespace longhaul::reduction
