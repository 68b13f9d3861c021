// SPDX-License-Identifier: Apache-2.0
// Slices in order, addressed by a byte offset that only grows: appended at the end, dropped from the front,
// read anywhere between. An empty queue owns hardly any memory, so that an idle stream stays small.
#pragma once
#include <cassert>
#include <vector>

#include "codecs/byte_writer.h"
#include "codecs/interval_set.h"
#include "codecs/slice.h"

namespace longhaul {

class SliceQueue {
 public:
  SliceQueue() = default;
  SliceQueue(const SliceQueue&) = delete;  // two would write to the same memory
  SliceQueue& operator=(const SliceQueue&) = delete;

  std::uint64_t begin_offset() const { return begin_; }
  std::uint64_t end_offset() const { return end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  bool empty() const { return begin_ == end_; }

  // Small neighbours are joined: a queue of single bytes would take a hundred times its content.
  void push(Slice slice) {
    if (slice.empty()) return;
    room_bytes_ = 0;
    std::uint64_t start = end_;
    end_ += slice.size();
    if (head_ < entries_.size() && entries_.back().slice.size() + slice.size() <= kJoinBytes) {
      Slice& last = entries_.back().slice;
      last = Slice::joined(last.bytes(), slice.bytes());
    } else {
      entries_.push_back({start, std::move(slice)});
    }
  }

  // The same for a copy of `bytes`, for data that arrives in many pieces before it is read: the first is
  // copied into memory of its size, the others into slices that each have room for twice as much as the
  // previous one, up to kMaxRoom.
  void push_copy(Bytes bytes) {
    end_ += bytes.size();
    if (std::size_t joined = std::min(bytes.size(), room_bytes_)) {
      std::memcpy(room_, bytes.data(), joined);
      room_ += joined;
      room_bytes_ -= joined;
      entries_.back().slice.extend(joined);
      bytes = bytes.subspan(joined);
    }
    if (bytes.empty()) return;
    std::size_t capacity = bytes.size();
    if (head_ < entries_.size())
      capacity = std::max(capacity, std::clamp(2 * entries_.back().slice.size(), kJoinBytes, kMaxRoom));
    entries_.push_back({end_ - bytes.size(), Slice::with_room(bytes, capacity, room_)});
    room_bytes_ = capacity - bytes.size();
  }

  // Drops everything before `offset`, which must not be beyond the end.
  void drop_until(std::uint64_t offset) {
    assert(offset <= end_);
    if (offset <= begin_) return;
    begin_ = offset;
    while (head_ < entries_.size() && entries_[head_].end() <= begin_) entries_[head_++].slice = Slice{};
    if (head_ == entries_.size()) {
      room_bytes_ = 0;
      entries_.clear();
      head_ = 0;
      if (entries_.capacity() > kIdleCapacity) entries_.shrink_to_fit();
    } else if (head_ > entries_.size() / 2 && head_ >= kIdleCapacity) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }

  // The first bytes held that are contiguous, sharing their memory. The queue must not be empty.
  Slice front() const {
    const Entry& first = entries_[head_];
    return first.slice.from(static_cast<std::size_t>(begin_ - first.start));
  }

  // Calls `visit(Bytes)` for the pieces of `range`, in order, until it returns false. The range must be held;
  // a piece is valid until the next push or drop.
  template <class Visit>
  void visit(Interval range, Visit&& visit) const {
    assert(begin_ <= range.begin && range.end <= end_);
    auto entry =
        std::upper_bound(entries_.begin() + static_cast<std::ptrdiff_t>(head_), entries_.end(), range.begin,
                         [](std::uint64_t offset, const Entry& e) { return offset < e.end(); });
    for (; range.begin < range.end; ++entry) {
      std::uint64_t end = std::min(range.end, entry->end());
      Bytes piece = entry->slice.bytes().subspan(static_cast<std::size_t>(range.begin - entry->start),
                                                 static_cast<std::size_t>(end - range.begin));
      if (!visit(piece)) return;
      range.begin = end;
    }
  }

  void copy(Interval range, Buffer& out) const {
    visit(range, [&](Bytes piece) {
      append(out, piece);
      return true;
    });
  }

 private:
  static constexpr std::size_t kIdleCapacity = 16;
  static constexpr std::size_t kJoinBytes = 1024;
  static constexpr std::size_t kMaxRoom = 16 * 1024;

  struct Entry {
    std::uint64_t start;
    Slice slice;
    std::uint64_t end() const { return start + slice.size(); }
  };

  std::vector<Entry> entries_;
  std::size_t head_ = 0;
  std::byte* room_ = nullptr;  // after the last slice, in its memory
  std::size_t room_bytes_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace longhaul
