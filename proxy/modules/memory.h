// SPDX-License-Identifier: Apache-2.0
// The memory of the modules of all flows, a share of the daemon's memory limit: incomplete frames, and data
// that waits for a connection or the stream. proxy/flows/held_memory.h decides which flows may take more. Any
// thread may count in it: what a thread of a module still uses may outlive the flow.
#pragma once
#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

namespace longhaul::modules {

class Memory {
 public:
  explicit Memory(std::uint64_t cap_bytes) : cap_(cap_bytes) {}

  void add(std::uint64_t bytes) { used_ += bytes; }
  void remove(std::uint64_t bytes) {
    [[maybe_unused]] const std::uint64_t before = used_.fetch_sub(bytes);
    assert(bytes <= before);
  }
  bool is_short() const { return used_ >= cap_; }
  std::uint64_t used_bytes() const { return used_; }
  std::uint64_t cap_bytes() const { return cap_; }

 private:
  std::uint64_t cap_;
  std::atomic<std::uint64_t> used_ = 0;
};

// What one object takes of it.
class MemoryShare {
 public:
  // `memory` may be null: then nothing is counted.
  explicit MemoryShare(std::shared_ptr<Memory> memory, std::uint64_t bytes = 0) : memory_(std::move(memory)) {
    set(bytes);
  }
  ~MemoryShare() { set(0); }
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

  void set(std::uint64_t bytes) {
    if (!memory_) return;
    memory_->add(bytes);
    memory_->remove(std::exchange(bytes_, bytes));
  }
  bool is_short() const { return memory_ && memory_->is_short(); }

 private:
  std::shared_ptr<Memory> memory_;
  std::uint64_t bytes_ = 0;
};

}  // namespace longhaul::modules
