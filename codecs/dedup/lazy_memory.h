// SPDX-License-Identifier: Apache-2.0
// A large piece of zeroed memory that costs only address space until it is touched; in huge pages if the
// kernel has them.
#pragma once
#include <utility>

#include "codecs/bytes.h"
#include "codecs/dedup/page_filler.h"
#include "codecs/result.h"

namespace longhaul::dedup {

class LazyMemory {
 public:
  // Memory is allocated in pages of this size; the first kSmallBytes consist of small pages.
  static constexpr std::size_t kHugePage = 2 << 20;
  // Readable beyond both ends, so that wide loads need no special case there.
  static constexpr std::size_t kMargin = 4096;

  // Returns not_enough_memory if the address space or the kernel's limits do not allow it.
  static Result<LazyMemory> make(std::size_t bytes);

  LazyMemory(LazyMemory&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)),
        mapped_(std::exchange(other.mapped_, 0)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        asked_ahead_(std::exchange(other.asked_ahead_, false)) {}
  LazyMemory& operator=(LazyMemory&& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(asked_ahead_, other.asked_ahead_);
    return *this;
  }
  ~LazyMemory();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  // Lets another thread allocate the whole pages of [begin, end) soon.
  void make_ahead(std::size_t begin, std::size_t end, PageFiller::When when = PageFiller::When::soon);
  // Returns the whole pages of [begin, end) to the kernel; they read as zero afterwards.
  void release(std::size_t begin, std::size_t end);

 private:
  LazyMemory(void* mapping, std::size_t mapped, std::byte* data, std::size_t size)
      : mapping_(mapping), mapped_(mapped), data_(data), size_(size) {}

  void* mapping_;
  std::size_t mapped_;
  std::byte* data_;
  std::size_t size_;
  bool asked_ahead_ = false;
};

}  // namespace longhaul::dedup
