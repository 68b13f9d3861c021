// SPDX-License-Identifier: Apache-2.0
// How [limits] memory, the one cap for the whole process, is shared out among what needs memory. Pure; leaves
// keeping to a share to each part, and what the parts are for to their own folders.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul {

// The parts together never exceed the cap.
struct MemoryPlan {
  std::uint64_t cap_bytes = 0;
  std::uint64_t credit_bytes = 0;    // what peers may send to us (link::CreditPool)
  std::uint64_t retained_bytes = 0;  // what is kept until peers acknowledge it (link::RetainedBudget)
  std::uint64_t module_bytes = 0;    // what application modules hold of flows
  std::uint64_t ahead_bytes = 0;     // what they hold for clients before they ask
  std::uint64_t history_bytes = 0;   // all peers' dictionaries in memory, both directions (HistoryRoom)
  // The dictionary on disk: how much of the disk it may use, which its index in memory bounds; 0: none.
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_queue_bytes = 0;    // waits to be written
  std::uint64_t disk_loading_bytes = 0;  // is being read
  std::uint64_t store_bytes = 0;         // those two, the index and the catalogue
  std::uint64_t reserve_bytes = 0;       // not counted: connections, flows' own state, the allocator

  std::uint64_t sum_bytes() const {
    return credit_bytes + retained_bytes + module_bytes + ahead_bytes + history_bytes + store_bytes +
           reserve_bytes;
  }
};
MemoryPlan memory_plan(const config::Config& config);

// Shares the memory of dictionaries out: each peer gets what it is configured to have as long as there is
// enough, and then all the same.
class HistoryRoom {
 public:
  // `room_bytes`: history_bytes of the plan.
  HistoryRoom(std::uint64_t room_bytes, bool has_disk) : room_(room_bytes), has_disk_(has_disk) {}

  // For a new session with this peer: the size of the history of each direction, 0: none. It counts until the
  // peer's next session or forget(). After a peer was added, those that have more than their share now keep
  // it until their sessions end; the new one gets what is left.
  std::uint64_t assign(const config::Config& config, const std::string& peer);
  void forget(const std::string& peer) { assigned_.erase(peer); }

 private:
  std::uint64_t room_;
  bool has_disk_;
  std::map<std::string, std::uint64_t> assigned_;  // by peer
};

// The share of every peer, in the order of the configuration: for `longhaul check`.
std::vector<std::uint64_t> history_shares(const config::Config& config, const MemoryPlan& plan);

// Rounded down, for people.
std::string whole_mib(std::uint64_t bytes);
// One sentence for each wish of the configuration that the cap does not leave room for.
std::vector<std::string> memory_warnings(const config::Config& config);

}  // namespace longhaul
