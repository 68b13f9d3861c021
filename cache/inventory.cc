// SPDX-License-Identifier: Apache-2.0
#include "cache/inventory.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "codecs/keyed_hash.h"

namespace longhaul::cache {

// A peer chooses all of these: the epochs of its histories, and so the digests at each offset.
std::size_t Inventory::Hash::operator()(const reduction::SegmentName& name) const {
  std::uint64_t digest = 0;
  std::memcpy(&digest, name.digest.data(), sizeof digest);
  return KeyedHash{}(KeyedHash{}(digest, name.epoch), name.first);
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
  Shelf& shelf = shelves_[name.sites()];
  slots_[slot] = {.name = name, .number = number, .disk_bytes = disk_bytes, .state = state, .shelf = &shelf};
  names_.insert(slot);
  push_back(shelf.fresh, slot);
  shelf.bytes += disk_bytes;
  ++shelf.count;
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
  if (segment.stamp && segment.shelf->useful.last == slot) return false;
  unlink(list_of(segment), slot);
  if (!segment.stamp) count_useful(slot);
  segment.stamp = stamp;
  push_back(segment.shelf->useful, slot);
  bound_useful();
  return true;
}

void Inventory::order() {
  for (auto& [link, shelf] : shelves_) {
    std::vector<Slot> fresh, useful;
    for (Slot slot = shelf.fresh.first; slot != kNoSlot; slot = slots_[slot].after)
      (slots_[slot].stamp ? useful : fresh).push_back(slot);
    for (Slot slot = shelf.useful.first; slot != kNoSlot; slot = slots_[slot].after) useful.push_back(slot);
    std::sort(fresh.begin(), fresh.end(),
              [&](Slot a, Slot b) { return slots_[a].number < slots_[b].number; });
    std::sort(useful.begin(), useful.end(),
              [&](Slot a, Slot b) { return slots_[a].stamp < slots_[b].stamp; });
    useful_bytes_ -= shelf.useful_bytes;
    useful_count_ -= shelf.useful_count;
    shelf.fresh = shelf.useful = {};
    shelf.useful_bytes = shelf.useful_count = 0;
    for (Slot slot : fresh) push_back(shelf.fresh, slot);
    for (Slot slot : useful) {
      push_back(shelf.useful, slot);
      count_useful(slot);
    }
  }
  bound_useful();
}

void Inventory::count_useful(Slot slot) {
  const Segment& segment = slots_[slot];
  segment.shelf->useful_bytes += segment.disk_bytes;
  ++segment.shelf->useful_count;
  useful_bytes_ += segment.disk_bytes;
  ++useful_count_;
}

void Inventory::discount_useful(Slot slot) {
  const Segment& segment = slots_[slot];
  segment.shelf->useful_bytes -= segment.disk_bytes;
  --segment.shelf->useful_count;
  useful_bytes_ -= segment.disk_bytes;
  --useful_count_;
}

// Of the link with most of them, those unused for longest are treated like those that were never used.
void Inventory::bound_useful() {
  while ((useful_bytes_ > useful_limit_ || useful_count_ > useful_most_) && useful_count_ > 1) {
    const bool bytes = useful_bytes_ > useful_limit_;
    auto most = std::max_element(shelves_.begin(), shelves_.end(), [&](const auto& a, const auto& b) {
      return bytes ? a.second.useful_bytes < b.second.useful_bytes
                   : a.second.useful_count < b.second.useful_count;
    });
    Shelf& shelf = most->second;
    Slot slot = shelf.useful.first;
    unlink(shelf.useful, slot);
    discount_useful(slot);
    slots_[slot].stamp = 0;
    push_front(shelf.fresh, slot);
  }
}

Slot Inventory::next_to_go(Short what) const {
  auto most = std::max_element(shelves_.begin(), shelves_.end(), [&](const auto& a, const auto& b) {
    return what == Short::bytes ? a.second.bytes < b.second.bytes : a.second.count < b.second.count;
  });
  if (most == shelves_.end()) return kNoSlot;
  const Shelf& shelf = most->second;
  return shelf.fresh.first != kNoSlot ? shelf.fresh.first : shelf.useful.first;
}

Slot Inventory::next_to_go_of(const reduction::SitePair& link) const {
  auto found = shelves_.find(link);
  if (found == shelves_.end()) return kNoSlot;
  return found->second.fresh.first != kNoSlot ? found->second.fresh.first : found->second.useful.first;
}

std::size_t Inventory::count_of(const reduction::SitePair& link) const {
  auto found = shelves_.find(link);
  return found == shelves_.end() ? 0 : found->second.count;
}

void Inventory::retire(Slot slot) {
  Segment& segment = slots_[slot];
  assert(segment.state == State::writing || segment.state == State::readable);
  names_.erase(names_.find(segment.name));
  unlink(list_of(segment), slot);
  if (segment.stamp) discount_useful(slot);
  disk_bytes_ -= segment.disk_bytes;
  segment.shelf->bytes -= segment.disk_bytes;
  if (--segment.shelf->count == 0) shelves_.erase(segment.name.sites());
  segment.shelf = nullptr;
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
  constexpr std::size_t kNode = 32;  // of the set, including malloc's overhead
  return slots_.size() * sizeof(Segment) + shelves_.size() * (sizeof(Shelves::value_type) + kNode) +
         free_.capacity() * sizeof(Slot) + names_.bucket_count() * sizeof(void*) + names_.size() * kNode;
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
