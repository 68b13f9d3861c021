// SPDX-License-Identifier: Apache-2.0
// What the modules of all flows hold between a connection and the stream, as a share of a daemon's one memory
// cap: frames that are being put together, and what waits for either. Who may still take something is the
// host's question (proxy/flows/module_host.h).
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
