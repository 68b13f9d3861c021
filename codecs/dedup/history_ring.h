// SPDX-License-Identifier: Apache-2.0
// The most recent bytes of one direction of a session, at 64-bit offsets that only grow; both sides
// keep the same bytes at the same offsets. shared_history.h knows which of them the twin has.
#pragma once
#include <algorithm>
#include <cassert>

#include "codecs/dedup/lazy_memory.h"
#include "codecs/interval_set.h"

namespace longhaul::dedup {

// The first byte's offset: 0 means "not in the ring".
inline constexpr std::uint64_t kRingStart = 65'536;
// Sizes are multiples of this, which is also what a block has at most: a block never straddles a multiple of
// the size, so its bytes stand in one piece.
inline constexpr std::size_t kRingStep = 65'536;

class HistoryRing {
 public:
  // `bytes`: a multiple of kRingStep, two of them at least. An error if there is no memory.
  static Result<HistoryRing> make(std::size_t bytes);

  std::size_t size() const { return memory_.size(); }
  // One past the newest byte.
  std::uint64_t head() const { return head_; }

  // Where the next block stands: at the head, or at the next multiple of the size if it would straddle that.
  std::uint64_t place(std::size_t bytes) const;

  // Whether [offset, offset + size) can be written: does not straddle, and is not behind what the ring holds.
  bool fits(std::uint64_t offset, std::uint64_t size) const;
  // The memory of a range that fits. Moves the head to its end if that is beyond it.
  MutableBytes reserve(std::uint64_t offset, std::size_t size);

  // Whether the range can be read: within the last size() bytes, not forgotten or left out, and in one
  // piece. Bytes that place() skipped, or that were not written yet, are not distinguished.
  bool holds(std::uint64_t offset, std::uint64_t size) const {
    if (offset < floor() || offset > head_ || size > head_ - offset) return false;
    if (!left_out_.empty() && left_out_.overlaps({offset, offset + size})) return false;
    return size <= this->size() - at(offset);
  }
  // The bytes of a range that the ring holds, until they are overwritten. LazyMemory::kMargin bytes before
  // and behind may be read too, and mean nothing.
  Bytes read(std::uint64_t offset, std::size_t size) const {
    assert(holds(offset, size));
    return {memory_.data() + at(offset), size};
  }

  // The range will not be written: it is not held until it is written. Only ranges that fit.
  void leave_out(Interval range);

  // Everything below is dropped; whole pages are returned to the kernel.
  void forget_before(std::uint64_t floor);

  // Nothing was written for a while: memory is prepared for the next writes.
  void on_quiet();

  // The lowest offset that is held.
  std::uint64_t floor() const { return head_ > size() ? std::max(forgotten_, head_ - size()) : forgotten_; }

 private:
  explicit HistoryRing(LazyMemory memory) : memory_(std::move(memory)) {}
  void make_ahead(std::uint64_t bytes, PageFiller::When when);
  // Where an offset stands in memory: without a division for all but what lies ahead of this lap.
  std::size_t at(std::uint64_t offset) const {
    if (offset >= lap_) return offset - lap_ < size() ? offset - lap_ : offset % size();
    return lap_ - offset <= size() ? offset + size() - lap_ : offset % size();
  }

  LazyMemory memory_;
  std::uint64_t head_ = kRingStart;
  std::uint64_t lap_ = 0;  // the last multiple of the size that is not above the head
  std::uint64_t forgotten_ = kRingStart;
  IntervalSet left_out_;  // nearly always none

  // Memory is made before the head comes to it for the first time.
  static constexpr std::uint64_t kLead = LazyMemory::kHugePage;
  static constexpr std::uint64_t kQuietLead = 128u << 20;  // at most, in quiet moments
  std::uint64_t ask_at_ = kLead / 2;                       // when the head is here,
  std::uint64_t made_to_ = kLead;                          // what is behind this is asked for,
  std::uint64_t make_to_ = memory_.size();                 // as far as this; from there on it was used before
};

}  // namespace longhaul::dedup
