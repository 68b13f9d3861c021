// SPDX-License-Identifier: Apache-2.0
#include "cache/inventory.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace longhaul::cache {

// The digest is evenly distributed; the rest tells apart what is the same in several rings.
std::size_t Inventory::Hash::operator()(const reduction::SegmentName& name) const {
  std::size_t hash = 0;
  std::memcpy(&hash, name.digest.data(), sizeof hash);
  return hash ^ (name.epoch + name.first * 0x9e3779b97f4a7c15);
}

Slot Inventory::add(const reduction::SegmentName& name, std::uint64_t number, std::uint32_t disk_bytes,
                    State state) {
  assert(find(name) == kNoSlot);
  Slot slot = kNoSlot;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else if (slots_.size() <= kMaxSlot) {
    slot = static_cast<Slot>(slots_.size());
    slots_.emplace_back();
  } else {
    return kNoSlot;
  }
  slots_[slot] = {.name = name, .number = number, .disk_bytes = disk_bytes, .state = state};
  names_.insert(slot);
  push_back(fresh_, slot);
  disk_bytes_ += disk_bytes;
  return slot;
}

Slot Inventory::find(const reduction::SegmentName& name) const {
  auto found = names_.find(name);
  return found == names_.end() ? kNoSlot : *found;
}

bool Inventory::is(Slot slot, std::uint64_t number) const {
  const Segment& segment = slots_[slot];
  return segment.number == number && (segment.state == State::writing || segment.state == State::readable);
}

bool Inventory::use(Slot slot, std::uint64_t stamp) {
  Segment& segment = slots_[slot];
  if (segment.stamp && useful_.last == slot) return false;
  unlink(list_of(segment), slot);
  if (!segment.stamp) count_useful(slot);
  segment.stamp = stamp;
  push_back(useful_, slot);
  bound_useful();
  return true;
}

void Inventory::order() {
  std::vector<Slot> fresh, useful;
  for (Slot slot = fresh_.first; slot != kNoSlot; slot = slots_[slot].after)
    (slots_[slot].stamp ? useful : fresh).push_back(slot);
  for (Slot slot = useful_.first; slot != kNoSlot; slot = slots_[slot].after) useful.push_back(slot);
  std::sort(fresh.begin(), fresh.end(), [&](Slot a, Slot b) { return slots_[a].number < slots_[b].number; });
  std::sort(useful.begin(), useful.end(), [&](Slot a, Slot b) { return slots_[a].stamp < slots_[b].stamp; });
  fresh_ = useful_ = {};
  useful_bytes_ = useful_count_ = 0;
  for (Slot slot : fresh) push_back(fresh_, slot);
  for (Slot slot : useful) {
    push_back(useful_, slot);
    count_useful(slot);
  }
  bound_useful();
}

void Inventory::count_useful(Slot slot) {
  useful_bytes_ += slots_[slot].disk_bytes;
  ++useful_count_;
}

void Inventory::discount_useful(Slot slot) {
  useful_bytes_ -= slots_[slot].disk_bytes;
  --useful_count_;
}

// The longest unused ones stand first among those that never were: nobody asked for them in a long time.
void Inventory::bound_useful() {
  while ((useful_bytes_ > useful_limit_ || useful_count_ > useful_most_) && useful_count_ > 1) {
    Slot slot = useful_.first;
    unlink(useful_, slot);
    discount_useful(slot);
    slots_[slot].stamp = 0;
    push_front(fresh_, slot);
  }
}

void Inventory::retire(Slot slot) {
  Segment& segment = slots_[slot];
  assert(segment.state == State::writing || segment.state == State::readable);
  names_.erase(names_.find(segment.name));
  unlink(list_of(segment), slot);
  if (segment.stamp) discount_useful(slot);
  disk_bytes_ -= segment.disk_bytes;
  segment.state = State::retired;
}

void Inventory::release(Slot slot) {
  assert(slots_[slot].state == State::retired);
  slots_[slot].state = State::free;
  free_.push_back(slot);
}

void Inventory::release_all() {
  for (Slot slot = 1; slot < slots_.size(); ++slot)
    if (slots_[slot].state == State::retired) release(slot);
}

std::size_t Inventory::memory_bytes() const {
  constexpr std::size_t kNode = 32;  // of the set, with what malloc adds
  return slots_.size() * sizeof(Segment) + free_.capacity() * sizeof(Slot) +
         names_.bucket_count() * sizeof(void*) + names_.size() * kNode;
}

void Inventory::push_back(List& list, Slot slot) {
  slots_[slot].before = list.last;
  slots_[slot].after = kNoSlot;
  (list.last ? slots_[list.last].after : list.first) = slot;
  list.last = slot;
}

void Inventory::push_front(List& list, Slot slot) {
  slots_[slot].before = kNoSlot;
  slots_[slot].after = list.first;
  (list.first ? slots_[list.first].before : list.last) = slot;
  list.first = slot;
}

void Inventory::unlink(List& list, Slot slot) {
  Segment& segment = slots_[slot];
  (segment.before ? slots_[segment.before].after : list.first) = segment.after;
  (segment.after ? slots_[segment.after].before : list.last) = segment.before;
  segment.before = segment.after = kNoSlot;
}

}  // namespace longhaul::cache
