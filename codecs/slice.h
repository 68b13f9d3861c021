// SPDX-License-Identifier: Apache-2.0
// Owned bytes: reference-counted, immutable once shared, cheap to split.
#pragma once
#include <cassert>
#include <cstring>
#include <memory>

#include "codecs/bytes.h"

namespace longhaul {

class Slice {
 public:
  Slice() = default;

  // Copies `bytes` into memory of exactly that size, so that a small slice never pins a large buffer.
  static Slice copy_of(Bytes bytes) { return joined({}, bytes); }

  // One slice that holds a copy of `head` and then `body`: a header and its content, in one allocation.
  static Slice joined(Bytes head, Bytes body) {
    Slice slice;
    slice.size_ = head.size() + body.size();
    if (slice.size_ == 0) return slice;
    auto memory = std::make_shared_for_overwrite<std::byte[]>(slice.size_);
    if (!head.empty()) std::memcpy(memory.get(), head.data(), head.size());
    if (!body.empty()) std::memcpy(memory.get() + head.size(), body.data(), body.size());
    slice.memory_ = std::move(memory);
    return slice;
  }

  // New memory of `size` bytes, which the caller fills before it shares the slice.
  static Slice unfilled(std::size_t size, std::byte*& memory) {
    auto owned = std::make_shared_for_overwrite<std::byte[]>(size);
    memory = owned.get();
    Slice slice;
    slice.size_ = size;
    slice.memory_ = std::move(owned);
    return slice;
  }

  // Memory allocated elsewhere, of `size` bytes, freed by its pointer's deleter.
  static Slice adopt(std::shared_ptr<const std::byte[]> memory, std::size_t size) {
    Slice slice;
    slice.memory_ = std::move(memory);
    slice.size_ = size;
    return slice;
  }

  // A copy of `bytes` in memory for at least `capacity` bytes. More may be written at `room`, before extend()
  // adds them to the slice.
  static Slice with_room(Bytes bytes, std::size_t capacity, std::byte*& room) {
    assert(bytes.size() <= capacity);
    Slice slice = unfilled(capacity, room);
    if (!bytes.empty()) std::memcpy(room, bytes.data(), bytes.size());
    room += bytes.size();
    slice.size_ = bytes.size();
    return slice;
  }
  void extend(std::size_t bytes) { size_ += bytes; }

  Bytes bytes() const { return {memory_.get() + offset_, size_}; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The bytes [offset, offset + length) of this slice, sharing its memory. The range must be inside.
  Slice sub(std::size_t offset, std::size_t length) const {
    assert(offset <= size_ && length <= size_ - offset);
    Slice part = *this;
    part.offset_ += offset;
    part.size_ = length;
    return part;
  }
  Slice from(std::size_t offset) const { return sub(offset, size_ - offset); }

 private:
  std::shared_ptr<const std::byte[]> memory_;
  std::size_t offset_ = 0;
  std::size_t size_ = 0;
};

}  // namespace longhaul
