// SPDX-License-Identifier: Apache-2.0
// The list of segments with their sizes on disk and their order of eviction (FORMAT.md, section 7). Pure;
// hook_index.h has their contents and segment_folder.h their files.
#pragma once
#include <deque>
#include <map>
#include <unordered_set>

#include "codecs/reduction/segments.h"

namespace longhaul::cache {

// A small number for a segment while it is known; 0: none.
using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = 0;
inline constexpr Slot kMaxSlot = (1u << 24) - 1;  // what fits into a hook's entry

class Inventory {
 private:
  struct List {
    Slot first = kNoSlot;
    Slot last = kNoSlot;
  };
  // The segments of one link.
  struct Shelf {
    List fresh, useful;
    std::uint64_t bytes = 0, useful_bytes = 0;
    std::size_t count = 0, useful_count = 0;
  };
  using Shelves = std::map<reduction::SitePair, Shelf>;

 public:
  enum class State : std::uint8_t {
    free,
    writing,  // has its position and size, but cannot be read yet
    readable,
    retired,  // removed, but hooks may still refer to its slot
  };
  struct Segment {
    reduction::SegmentName name;
    std::uint64_t number = 0;
    std::uint64_t stamp = 0;  // of the last use; 0: never used, or treated as such
    std::uint32_t disk_bytes = 0;
    State state = State::free;
    Slot before = kNoSlot;  // neighbours in the list of its state
    Slot after = kNoSlot;
    Shelf* shelf = nullptr;  // of its link, while the segment is known
  };
  // The resource that is exceeded.
  enum class Short { bytes, segments };

  // At most this many bytes and segments are kept longer because they were used.
  Inventory(std::uint64_t useful_bytes, std::size_t useful_segments)
      : useful_limit_(useful_bytes), useful_most_(useful_segments) {
    slots_.emplace_back();
  }
  Inventory(const Inventory&) = delete;  // the set of names refers to this one
  Inventory& operator=(const Inventory&) = delete;

  // The name must be new. Returns kNoSlot if there is no free slot.
  Slot add(const reduction::SegmentName& name, std::uint64_t number, std::uint32_t disk_bytes, State state);
  Slot find(const reduction::SegmentName& name) const;
  const Segment& at(Slot slot) const { return slots_[slot]; }
  // Whether the slot still holds that segment.
  bool is(Slot slot, std::uint64_t number) const;
  void make_readable(Slot slot) { slots_[slot].state = State::readable; }

  // Stamps grow. Returns false if it was the newest use already, so that nothing has changed.
  bool use(Slot slot, std::uint64_t stamp);
  // The same for stamps in any order, as when reading the directory; call order() once afterwards.
  void was_used(Slot slot, std::uint64_t stamp) { slots_[slot].stamp = stamp; }
  void order();

  // A segment of the link that uses most of the exceeded resource, so that no link takes more than an equal
  // share from others.
  Slot next_to_go(Short what = Short::bytes) const;
  Slot next_to_go_of(const reduction::SitePair& link) const;
  std::size_t count_of(const reduction::SitePair& link) const;
  void retire(Slot slot);
  void release(Slot slot);  // a retired one
  void release_all();       // every retired one

  std::uint64_t disk_bytes() const { return disk_bytes_; }
  std::size_t count() const { return names_.size(); }
  std::size_t memory_bytes() const;
  template <class Visit>
  void each_readable(Visit&& visit) const {
    for (Slot slot = 1; slot < slots_.size(); ++slot)
      if (slots_[slot].state == State::readable) visit(slot, slots_[slot]);
  }
  // The same for the links with one of these sites at an end; the work grows with their segments and the
  // number of links.
  template <class Visit>
  void each_readable(std::span<const reduction::SiteId> sites, Visit&& visit) const {
    for (const auto& [link, shelf] : shelves_) {
      if (std::none_of(sites.begin(), sites.end(), [&](const auto& site) { return link.has(site); }))
        continue;
      for (const List* list : {&shelf.fresh, &shelf.useful})
        for (Slot slot = list->first; slot != kNoSlot; slot = slots_[slot].after)
          if (slots_[slot].state == State::readable) visit(slots_[slot]);
    }
  }

 private:
  // Names are compared in place, in the slots.
  struct Hash {
    using is_transparent = void;
    const std::deque<Segment>* slots;
    std::size_t operator()(const reduction::SegmentName& name) const;
    std::size_t operator()(Slot slot) const { return (*this)((*slots)[slot].name); }
  };
  struct Equal {
    using is_transparent = void;
    const std::deque<Segment>* slots;
    bool operator()(Slot a, Slot b) const { return a == b; }
    bool operator()(const reduction::SegmentName& name, Slot slot) const {
      return (*slots)[slot].name == name;
    }
    bool operator()(Slot slot, const reduction::SegmentName& name) const {
      return (*slots)[slot].name == name;
    }
  };

  void push_back(List& list, Slot slot);
  void push_front(List& list, Slot slot);
  void unlink(List& list, Slot slot);
  static List& list_of(const Segment& segment) {
    return segment.stamp ? segment.shelf->useful : segment.shelf->fresh;
  }
  void count_useful(Slot slot);
  void discount_useful(Slot slot);
  void bound_useful();

  std::uint64_t useful_limit_;
  std::size_t useful_most_;
  std::uint64_t disk_bytes_ = 0;
  std::uint64_t useful_bytes_ = 0;
  std::size_t useful_count_ = 0;
  std::deque<Segment> slots_;
  std::vector<Slot> free_;
  Shelves shelves_;  // none is empty
  std::unordered_set<Slot, Hash, Equal> names_{16, Hash{&slots_}, Equal{&slots_}};
};

}  // namespace longhaul::cache
