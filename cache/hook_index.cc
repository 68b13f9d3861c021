// SPDX-License-Identifier: Apache-2.0
#include "cache/hook_index.h"

#include <algorithm>

namespace longhaul::cache {

void HookIndex::insert(std::uint64_t fingerprint, Slot slot, std::uint32_t offset) {
  Part& part = parts_[part_of(fingerprint)];
  if ((part.filled + 1) * 5 > part.buckets * kBucket * 4) grow(part);
  std::uint64_t tag = tag_of(fingerprint);
  std::uint64_t entry = tag << (kSlotBits + kGranuleBits) | std::uint64_t{slot} << kGranuleBits |
                        offset / reduction::kHookGranule;
  auto buckets = part.buckets_of(tag);
  std::uint64_t* room = nullptr;
  std::array<std::uint64_t*, 2 * kBucket> same{};
  std::size_t same_count = 0;
  for (std::uint64_t* bucket : buckets)
    for (std::uint64_t* at = bucket; at != bucket + kBucket; ++at) {
      if (*at == entry) return;
      if (*at == 0 || is_dead(*at)) {
        if (!room) room = at;
      } else if (*at >> (kSlotBits + kGranuleBits) == tag) {
        same[same_count++] = at;
      }
    }
  // Hooks that occur everywhere, such as those of zeros, must not evict rare ones.
  if (same_count >= kSameContent) room = same[slot % same_count];
  if (!room) room = buckets[0] + fingerprint % kBucket;
  if (*room == 0) ++part.filled;
  *room = entry;
  sweep();
}

std::size_t HookIndex::find(std::uint64_t fingerprint, std::array<Place, kBucket>& places) const {
  const Part& part = parts_[part_of(fingerprint)];
  if (part.buckets == 0) return 0;
  std::uint64_t tag = tag_of(fingerprint);
  std::size_t found = 0;
  auto buckets = part.buckets_of(tag);
  for (std::size_t i = 0; i < (part.buckets > 1 ? buckets.size() : 1); ++i)
    for (const std::uint64_t* at = buckets[i]; at != buckets[i] + kBucket && found < places.size(); ++at) {
      if (*at == 0 || *at >> (kSlotBits + kGranuleBits) != tag || is_dead(*at)) continue;
      auto granule = static_cast<std::uint32_t>(*at & ((1u << kGranuleBits) - 1));
      places[found++] = {slot_of(*at), granule * reduction::kHookGranule};
    }
  return found;
}

void HookIndex::retire(Slot slot) {
  if (dead_.size() <= slot) dead_.resize(slot + 1);
  dead_[slot] = true;
  // The sweep may be in the middle of that part.
  retired_.push_back({slot, swept_ + 1 + parts_.size()});
}

Slot HookIndex::poll_swept() {
  if (retired_.empty() || swept_ < retired_.front().until) return kNoSlot;
  Slot slot = retired_.front().slot;
  retired_.pop_front();
  dead_[slot] = false;
  return slot;
}

void HookIndex::clear() {
  for (Part& part : parts_) part = {};
  dead_ = {};
  retired_.clear();
  swept_ = 0;
  sweep_entry_ = 0;
}

std::size_t HookIndex::memory_bytes() const {
  std::size_t bytes = sizeof *this + dead_.capacity() / 8 + retired_.size() * sizeof(Retired);
  for (const Part& part : parts_) bytes += part.buckets * kBucket * sizeof(std::uint64_t);
  return bytes;
}

// Grows by an eighth: a part is between 70 and 80 per cent full. The tag gives the bucket, whatever their
// number.
void HookIndex::grow(Part& part) {
  Part larger;
  larger.buckets = part.buckets + std::max(1u, part.buckets / 8);
  larger.entries = std::make_unique<std::uint64_t[]>(larger.buckets * kBucket);
  for (std::size_t i = 0; i < part.buckets * kBucket; ++i) {
    std::uint64_t entry = part.entries[i];
    if (entry == 0 || is_dead(entry)) continue;
    for (std::uint64_t* bucket : larger.buckets_of(entry >> (kSlotBits + kGranuleBits))) {
      std::uint64_t* room = std::find(bucket, bucket + kBucket, 0);
      if (room == bucket + kBucket) continue;
      *room = entry;
      ++larger.filled;
      break;  // otherwise one hint is lost
    }
  }
  if (&part == &parts_[swept_ % parts_.size()]) sweep_entry_ = 0;
  part = std::move(larger);
}

void HookIndex::sweep() {
  if (retired_.empty()) return;
  std::size_t looked_at = 0;
  // A part without entries counts as one; otherwise a small index would never complete a round.
  while (looked_at < kSweep) {
    Part& part = parts_[swept_ % parts_.size()];
    std::size_t end = part.buckets * kBucket;
    for (; sweep_entry_ < end && looked_at < kSweep; ++sweep_entry_, ++looked_at) {
      std::uint64_t& entry = part.entries[sweep_entry_];
      if (entry == 0 || !is_dead(entry)) continue;
      entry = 0;
      --part.filled;
    }
    if (sweep_entry_ < end) return;
    sweep_entry_ = 0;
    ++swept_;
    ++looked_at;
  }
}

}  // namespace longhaul::cache
