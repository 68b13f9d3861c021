// SPDX-License-Identifier: Apache-2.0
// The most recent bytes of one direction of a session, at 64-bit offsets that only grow; both sides store the
// same bytes at the same offsets. shared_history.h tracks which of them the twin has.
#pragma once
#include <algorithm>
#include <cassert>

#include "codecs/dedup/lazy_memory.h"
#include "codecs/interval_set.h"

namespace longhaul::dedup {

// The offset of the first byte: 0 means "not in the ring".
inline constexpr std::uint64_t kRingStart = 65'536;
// Sizes are multiples of this, which is also the maximum size of a block. A block never straddles a multiple
// of the size, so its bytes are contiguous.
inline constexpr std::size_t kRingStep = 65'536;

class HistoryRing {
 public:
  // `bytes`: a multiple of kRingStep, at least two of them. Returns an error if there is not enough memory.
  static Result<HistoryRing> make(std::size_t bytes);

  std::size_t size() const { return memory_.size(); }
  // One past the newest byte.
  std::uint64_t head() const { return head_; }

  // Where the next block begins: at the head, or at the next multiple of the size if it would straddle that.
  std::uint64_t place(std::size_t bytes) const;

  // Whether [offset, offset + size) can be written: it does not straddle, and the ring has not passed it.
  bool fits(std::uint64_t offset, std::uint64_t size) const;
  // The memory of a range that fits. Moves the head to the end of the range if that is beyond it.
  MutableBytes reserve(std::uint64_t offset, std::size_t size);

  // Whether the range can be read: within the last size() bytes, not forgotten or left out, and contiguous.
  // Does not detect bytes that place() skipped, or that were not written yet.
  bool holds(std::uint64_t offset, std::uint64_t size) const {
    if (offset < floor() || offset > head_ || size > head_ - offset) return false;
    if (!left_out_.empty() && left_out_.overlaps({offset, offset + size})) return false;
    return size <= this->size() - at(offset);
  }
  // The bytes of a range that the ring holds, valid until they are overwritten. LazyMemory::kMargin bytes
  // before and after it may be read too; their values have no meaning.
  Bytes read(std::uint64_t offset, std::size_t size) const {
    assert(holds(offset, size));
    return {memory_.data() + at(offset), size};
  }

  // The range will not be written and is not held until it is written again. The range must fit.
  void leave_out(Interval range);

  // Drops everything below `floor`; whole pages are returned to the kernel.
  void forget_before(std::uint64_t floor);

  // Nothing was written for a while: allocates memory for the next writes.
  void on_quiet();

  // The lowest offset that is held.
  std::uint64_t floor() const { return head_ > size() ? std::max(forgotten_, head_ - size()) : forgotten_; }

 private:
  explicit HistoryRing(LazyMemory memory) : memory_(std::move(memory)) {}
  void make_ahead(std::uint64_t bytes, PageFiller::When when);
  // The position of an offset in memory; needs a division only for offsets beyond this lap.
  std::size_t at(std::uint64_t offset) const {
    if (offset >= lap_) return offset - lap_ < size() ? offset - lap_ : offset % size();
    return lap_ - offset <= size() ? offset + size() - lap_ : offset % size();
  }

  LazyMemory memory_;
  std::uint64_t head_ = kRingStart;
  std::uint64_t lap_ = 0;  // the last multiple of the size that is not above the head
  std::uint64_t forgotten_ = kRingStart;
  IntervalSet left_out_;  // almost always empty

  // Memory is allocated before the head reaches it for the first time.
  static constexpr std::uint64_t kLead = LazyMemory::kHugePage;
  static constexpr std::uint64_t kQuietLead = 128u << 20;  // maximum, in quiet moments
  std::uint64_t ask_at_ = kLead / 2;                       // once the head is here,
  std::uint64_t made_to_ = kLead;                          // memory beyond this is requested,
  std::uint64_t make_to_ = memory_.size();                 // up to here; beyond, it was used before
};

}  // namespace longhaul::dedup
