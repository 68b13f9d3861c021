// SPDX-License-Identifier: Apache-2.0
// Two sites with disks, and what crosses from one to the other in sessions of their own.
#pragma once
#include "codecs/reduction/disk_tier.h"
#include "tests/codecs/reduction/twins.h"

namespace longhaul::reduction {

inline constexpr std::uint64_t kStream = 4;

// All of it in whole blocks, delivered as it is written: as on a line that is slower than the disk.
inline void send(Twins& twins, int from, std::uint64_t stream, std::string_view bytes) {
  while (!bytes.empty()) {
    std::string_view block = bytes.substr(0, 65'536);
    twins.write(from, stream, block);
    bytes.remove_prefix(block.size());
    twins.settle();
  }
}

struct Sites {
  cache::MemoryStore here, there;
  std::uint64_t epoch = 10;
  // A session of its own: new histories, the same disks.
  std::unique_ptr<Twins> session(std::size_t ring_mebibytes = 16) {
    auto twins = std::make_unique<Twins>(epoch, epoch, here, there, ring_mebibytes);
    epoch += 2;
    twins->meet();
    return twins;
  }
  // One that sends the bytes to the other side, and to both disks.
  void store(std::string_view bytes) {
    auto twins = session();
    send(*twins, 0, kStream, bytes);
    twins->rest();
  }
};

}  // namespace longhaul::reduction
