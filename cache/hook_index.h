// SPDX-License-Identifier: Apache-2.0
// Finds the places in segments where a fingerprint occurred, with 8 bytes of memory for each (FORMAT.md,
// section 9). Pure.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cache/inventory.h"

namespace longhaul::cache {

class HookIndex {
 public:
  struct Place {
    Slot slot = kNoSlot;
    std::uint32_t offset = 0;  // a multiple of reduction::kHookGranule
  };
  static constexpr std::size_t kBucket = 8;  // entries: one cache line

  void insert(std::uint64_t fingerprint, Slot slot, std::uint32_t offset);
  // Fills `places`, and returns how many.
  std::size_t find(std::uint64_t fingerprint, std::array<Place, kBucket>& places) const;

  // From now on its hooks are not found. The slot must not be reused before poll_swept() returns it, which
  // takes as many insertions as there are hooks, divided by kSweep.
  void retire(Slot slot);
  Slot poll_swept();  // kNoSlot: not yet
  void clear();

  std::size_t memory_bytes() const;

 private:
  static constexpr unsigned kPartBits = 12;
  static constexpr unsigned kTagBits = 30;
  static constexpr unsigned kGranuleBits = 10;
  static constexpr unsigned kSlotBits = 24;
  static constexpr std::size_t kSweep = 16;       // entries examined for each insertion
  static constexpr std::size_t kSameContent = 4;  // places remembered for one fingerprint
  static_assert(kTagBits + kGranuleBits + kSlotBits == 64);
  static_assert(reduction::kMaxSegmentBytes / reduction::kHookGranule == 1u << kGranuleBits);

  // An entry is tag, slot and granule; slot 0 is unused, so that 0 is an empty entry.
  struct Part {
    std::unique_ptr<std::uint64_t[]> entries;
    std::uint32_t buckets = 0;
    std::uint32_t filled = 0;
    // An entry is in its own bucket, or in the next one if that is full.
    std::array<std::uint64_t*, 2> buckets_of(std::uint64_t tag) const {
      std::size_t own = tag * buckets >> kTagBits, next = own + 1 == buckets ? 0 : own + 1;
      return {&entries[own * kBucket], &entries[next * kBucket]};
    }
  };

  static std::size_t part_of(std::uint64_t fingerprint) { return fingerprint >> (64 - kPartBits); }
  static std::uint64_t tag_of(std::uint64_t fingerprint) {
    return fingerprint >> (64 - kPartBits - kTagBits) & ((1ull << kTagBits) - 1);
  }
  static Slot slot_of(std::uint64_t entry) { return static_cast<Slot>(entry >> kGranuleBits & kMaxSlot); }
  bool is_dead(std::uint64_t entry) const {
    Slot slot = slot_of(entry);
    return slot < dead_.size() && dead_[slot];
  }
  void grow(Part& part);
  void sweep();

  struct Retired {
    Slot slot;
    std::uint64_t until;  // value of swept_ from which no entry refers to it
  };

  std::array<Part, 1u << kPartBits> parts_;
  std::vector<bool> dead_;
  std::deque<Retired> retired_;
  std::uint64_t swept_ = 0;      // parts, in all rounds
  std::size_t sweep_entry_ = 0;  // in the part that is being swept
};

}  // namespace longhaul::cache
