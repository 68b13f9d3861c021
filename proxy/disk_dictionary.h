// SPDX-License-Identifier: Apache-2.0
// The disk dictionary in the daemon: opens the store where the configuration says, takes on the event loop
// what its threads have done, and tells time to those who have none. Leaves storing to cache/ and what is
// stored to the sessions' codecs.
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
  // `progressed` is called after the store has told the codecs what was stored, dropped or loaded; `second`
  // about once a second. Throws cache::StoreInUse; any other directory that cannot be used is logged, and
  // then there is no store. `io` outlives this and runs no more when this ends.
  DiskDictionary(boost::asio::io_context& io, const config::Config& config, const MemoryPlan& plan,
                 std::function<void()> progressed, std::function<void()> second);

  // Null: none is configured, or it cannot be used.
  reduction::SegmentStore* store() { return store_.get(); }
  std::optional<cache::StoreCounters> counters() const {
    return store_ ? std::optional(store_->counters()) : std::nullopt;
  }
  // Memory of the index, and of what waits to be written. (Not RocksDB's, nor what is being read.)
  std::uint64_t memory_bytes() const {
    const auto counted = counters();
    return counted ? counted->memory_bytes + counted->queued_bytes : 0;
  }
  // Everything is dropped, and the key destroyed; how many bytes that were.
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

// What names of segments begin with: the first half of "sha256:" and 64 digits.
reduction::SiteId site_id(const std::string& fingerprint);
// What a peer may read beside what its own link has stored.
reduction::SegmentRights rights_of(const config::Config& config, const config::Peer& peer);

}  // namespace longhaul
