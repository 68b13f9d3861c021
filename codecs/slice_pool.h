// SPDX-License-Identifier: Apache-2.0
// Large slices whose memory is reused. The kernel allocates fresh memory page by page on first touch, which
// takes longer than copying into it.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "codecs/slice.h"

namespace longhaul {

// Slices may outlive the pool, and be released on any thread.
class SlicePool {
 public:
  // Keeps the memory of at most `most_kept` slices of `bytes` that are no longer referenced.
  SlicePool(std::size_t bytes, std::size_t most_kept) : bytes_(bytes), shelf_(std::make_shared<Shelf>()) {
    shelf_->most = most_kept;
  }

  // A slice of the pool's size, not filled; `memory` points to its bytes, as with Slice::unfilled.
  Slice take(std::byte*& memory) {
    std::unique_ptr<std::byte[]> owned = shelf_->take();
    if (!owned) owned = std::make_unique_for_overwrite<std::byte[]>(bytes_);
    memory = owned.get();
    return Slice::adopt({owned.release(), [shelf = shelf_](std::byte* done) { shelf->put(done); }}, bytes_);
  }
  std::size_t bytes() const { return bytes_; }

  // Releases the kept memory.
  void release() { shelf_->clear(); }

 private:
  struct Shelf {
    std::mutex mutex;
    std::vector<std::unique_ptr<std::byte[]>> free;
    std::size_t most = 0;

    std::unique_ptr<std::byte[]> take() {
      std::lock_guard lock(mutex);
      if (free.empty()) return nullptr;
      auto memory = std::move(free.back());
      free.pop_back();
      return memory;
    }
    void put(std::byte* done) {
      std::unique_ptr<std::byte[]> memory(done);
      std::lock_guard lock(mutex);
      if (free.size() < most) free.push_back(std::move(memory));
    }
    void clear() {
      std::vector<std::unique_ptr<std::byte[]>> gone;
      std::lock_guard lock(mutex);
      gone.swap(free);
    }
  };

  std::size_t bytes_;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace longhaul
