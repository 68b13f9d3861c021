// SPDX-License-Identifier: Apache-2.0
#include "proxy/dictionary_memory.h"

#include "cache/disk_store.h"

namespace longhaul {

namespace {
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kIndexShare = 16;     // of a history that is sent (codecs/dedup/README.md)
constexpr std::uint64_t kReadAheadShare = 8;  // of the same (DiskTier::memory_bytes)
constexpr std::uint64_t kSegmentsInTheMaking = 8 * kMiB;  // one, and the memory of the last
// The disk dictionary's index, and RocksDB (cache/FORMAT.md, section 8).
constexpr std::uint64_t kStoredForMiB = 256 * kMiB;
constexpr std::uint64_t kCatalogue = 16 * kMiB;
}  // namespace

std::uint64_t most_dictionary_memory(const config::Config& config) {
  std::uint64_t most = 0;
  for (const config::Peer& peer : config.peers) {
    const std::uint64_t history = peer.dictionary_memory_bytes.value_or(config.dictionary.memory_bytes);
    most += 2 * history + history / kIndexShare;
    if (config.dictionary.disk_bytes > 0) most += history / kReadAheadShare + kSegmentsInTheMaking;
  }
  if (config.dictionary.disk_bytes > 0 && !config.peers.empty()) {
    const cache::DiskStoreOptions options;
    most += (config.dictionary.disk_bytes + kStoredForMiB - 1) / kStoredForMiB * kMiB + kCatalogue +
            options.queue_bytes + options.loading_bytes;
  }
  return most;
}

}  // namespace longhaul
