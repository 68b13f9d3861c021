// SPDX-License-Identifier: Apache-2.0
// The daemon's disk dictionary: opens the configured store, handles the results of its threads on the event
// loop, and drives its timer. cache/ stores the data; the sessions' codecs use it.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "cache/disk_store.h"
#include "codecs/reduction/peer_segments.h"
#include "proxy/config/config.h"
#include "proxy/memory_plan.h"

namespace longhaul {

class DiskDictionary {
 public:
  // `progressed` is called after the store has notified the codecs about stored, dropped or loaded segments;
  // `second` about once a second. Throws cache::StoreInUse; any other unusable directory is logged, and then
  // there is no store. `io` outlives this object, and has stopped when it is destroyed.
  DiskDictionary(boost::asio::io_context& io, const config::Config& config, const MemoryPlan& plan,
                 std::function<void()> progressed, std::function<void()> second);

  // Null if none is configured or it cannot be used.
  reduction::SegmentStore* store() { return store_.get(); }
  std::optional<cache::StoreCounters> counters() const {
    return store_ ? std::optional(store_->counters()) : std::nullopt;
  }
  // Memory of the index and the write queue, without RocksDB and reads in progress.
  std::uint64_t memory_bytes() const {
    const auto counted = counters();
    return counted ? counted->memory_bytes + counted->queued_bytes : 0;
  }
  // Drops everything and destroys the key; returns the number of bytes dropped.
  std::uint64_t clear();
  cache::ClearedKey cleared_key() const { return store_ ? store_->cleared_key() : cache::ClearedKey::none; }
  void stop() { timer_.cancel(); }

 private:
  void poll();
  void wait();

  boost::asio::io_context& io_;
  std::function<void()> progressed_, second_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<cache::DiskStore> store_;
};

// The file of systemd's credential longhaul-dictionary.key; empty if there is none.
std::string dictionary_credential();
// The prefix of segment names: the first half of "sha256:" and 64 digits.
reduction::SiteId site_id(const std::string& fingerprint);
// What a peer may read beyond the data of its own link.
reduction::SegmentRights rights_of(const config::Config& config, const config::Peer& peer);

}  // namespace longhaul
