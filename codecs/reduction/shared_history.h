// SPDX-License-Identifier: Apache-2.0
// The encoder's view of the twin's history: which blocks are unacknowledged, which ranges the twin has, and
// therefore what a block may refer to without making one stream wait for another.
#pragma once
#include <deque>

#include "codecs/interval_set.h"

namespace longhaul::reduction {

// State of the history for each stream; owned by the encoder.
struct StreamTrack {
  Interval run;            // its latest blocks that are contiguous
  std::uint64_t last = 0;  // one past the number of its last block; 0: none
  std::uint64_t loaded_until = 0;  // bytes before this may be of other streams: they came from the disk
};

class SharedHistory {
 public:
  // Limit of unanswered blocks, however small they are.
  static constexpr std::size_t kMaxBlocks = 65'536;

  SharedHistory(std::size_t ring_bytes, std::uint64_t start);

  // How far the head may be ahead of the oldest unanswered block. References reach back by the ring minus
  // this, so that their source still exists when they arrive.
  std::uint64_t horizon() const { return ring_bytes_ / 4; }
  // Whether a block may be placed at [offset, offset + size), at the head. If not, it must not enter the
  // history.
  bool admits(std::uint64_t offset, std::uint64_t size);
  // Which streams may refer to a block: all, once the twin has answered, or only its own.
  enum class For : std::uint8_t { all, own_stream };
  // The block was sent.
  void add(std::uint64_t stream, StreamTrack& track, std::uint64_t offset, std::uint64_t size,
           For whom = For::all);
  // The twin holds these bytes; ranges that are not a block, or older than the history, are ignored.
  void on_held(Interval range);
  // Total bytes of answered blocks; and how many answers referred to blocks that had been answered before.
  std::uint64_t answered_bytes() const { return answered_bytes_; }
  std::uint64_t answered_again() const { return answered_again_; }
  // The stream has ended: its blocks may never be answered, and delay nothing.
  void abandon(const StreamTrack& track);

  // Unanswered blocks of the range will not be answered, and are not referred to.
  void give_up(Interval range);
  const IntervalSet& held_ranges() const { return held_; }

  // Bytes before the head are no longer referred to.
  void start_over();
  std::uint64_t floor() const { return floor_; }
  // Whether the twin has acknowledged the whole range.
  bool held(Interval range) const;
  // Whether a block at the head may refer to it, considering its age.
  bool in_reach(std::uint64_t offset) const { return offset >= low(head_) && offset < head_; }
  std::uint64_t head() const { return head_; }
  // Whether these bytes were sent and will probably never be acknowledged, which makes them useless.
  bool given_up(std::uint64_t offset) const;
  // The head, if every block was answered.
  std::uint64_t oldest_unanswered() const;

  // The history that the block of a stream at `offset` may refer to.
  class Reach {
   public:
    // A block of an isolated stream may also refer to that stream: its bytes never depend on other streams.
    Reach(const SharedHistory& history, std::uint64_t stream, const StreamTrack& track, std::uint64_t offset,
          For whom = For::all)
        : history_(history),
          stream_(stream),
          whom_(whom),
          run_(track.run),
          loaded_until_(track.loaded_until),
          low_(history.low(offset)) {}
    // The range around `position`; empty if there is none.
    Interval operator()(std::uint64_t position) const {
      if (position < last_.begin || position >= last_.end) last_ = find(position);
      return last_;
    }
    // The newest range that may be context for zstd: the stream's own bytes, or else those of any stream.
    Interval context(std::uint64_t most_bytes) const;

   private:
    Interval find(std::uint64_t position) const;
    Interval clip(Interval range, std::uint64_t position) const;

    const SharedHistory& history_;
    std::uint64_t stream_;
    For whom_;
    Interval run_;
    std::uint64_t loaded_until_;
    std::uint64_t low_;
    mutable Interval last_;  // found, and usually requested again
  };

 private:
  enum class State : std::uint8_t { unanswered, held, abandoned };
  struct Block {
    std::uint64_t offset, stream;
    std::uint64_t before;  // as StreamTrack::last: the stream's previous block
    std::uint32_t size;
    State state;
    For whom;
    std::uint64_t end() const { return offset + size; }
  };

  std::uint64_t low(std::uint64_t offset) const;
  std::size_t index_of(std::uint64_t offset) const;  // of the first block that ends after it
  void settle();
  void give_up_on_the_oldest();

  std::uint64_t ring_bytes_;
  std::uint64_t start_, head_, floor_;
  std::deque<Block> blocks_;        // by offset, starting with the oldest unanswered one, or a horizon back
  std::uint64_t first_number_ = 0;  // of blocks_.front(); numbers are consecutive
  std::uint64_t oldest_ = 0;        // number of the oldest unanswered block
  IntervalSet held_;
  std::uint64_t stalled_bytes_ = 0;  // not admitted since the last block that was
  std::uint64_t answered_bytes_ = 0, answered_again_ = 0;
};

}  // namespace longhaul::reduction
