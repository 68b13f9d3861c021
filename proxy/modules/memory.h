// SPDX-License-Identifier: Apache-2.0
// The memory of the modules of all flows, a share of the daemon's memory limit: incomplete frames, and data
// that waits for a connection or the stream. proxy/flows/held_memory.h decides which flows may use more.
#pragma once
#include <cassert>
#include <cstdint>

namespace longhaul::modules {

class Memory {
 public:
  explicit Memory(std::uint64_t cap_bytes) : cap_(cap_bytes) {}

  void add(std::uint64_t bytes) { used_ += bytes; }
  void remove(std::uint64_t bytes) {
    assert(bytes <= used_);
    used_ -= bytes;
  }
  bool is_short() const { return used_ >= cap_; }
  std::uint64_t used_bytes() const { return used_; }
  std::uint64_t cap_bytes() const { return cap_; }

 private:
  std::uint64_t cap_;
  std::uint64_t used_ = 0;
};

}  // namespace longhaul::modules
