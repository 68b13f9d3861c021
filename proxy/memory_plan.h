// SPDX-License-Identifier: Apache-2.0
// Divides [limits] memory, the limit of the whole process, among its parts. Pure; each part enforces its own
// share.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul {

// The parts together never exceed the limit.
struct MemoryPlan {
  std::uint64_t cap_bytes = 0;
  std::uint64_t credit_bytes = 0;    // unread data from peers (link::CreditPool)
  std::uint64_t retained_bytes = 0;  // data not yet acknowledged by peers (link::RetainedBudget)
  std::uint64_t module_bytes = 0;    // data of flows in application modules
  std::uint64_t ahead_bytes = 0;     // data read ahead of client requests
  std::uint64_t history_bytes = 0;   // all peers' dictionaries in memory, both directions (HistoryRoom)
  // The size of the dictionary on disk, limited by the memory of its index; 0: none.
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_queue_bytes = 0;    // data to be written
  std::uint64_t disk_loading_bytes = 0;  // data being read
  std::uint64_t store_bytes = 0;         // both of these, the index and the catalogue
  std::uint64_t reserve_bytes = 0;       // not counted: connections, flows' own state, the allocator

  std::uint64_t sum_bytes() const {
    return credit_bytes + retained_bytes + module_bytes + ahead_bytes + history_bytes + store_bytes +
           reserve_bytes;
  }
};
MemoryPlan memory_plan(const config::Config& config);

// Divides the memory of dictionaries: each peer gets its configured amount if there is enough, otherwise an
// equal share.
class HistoryRoom {
 public:
  // `room_bytes`: history_bytes of the plan.
  HistoryRoom(std::uint64_t room_bytes, bool has_disk) : room_(room_bytes), has_disk_(has_disk) {}

  // For a new session with this peer: the size of the history of each direction; 0: none. It is reserved
  // until the peer's next session or forget(). After a peer was added, peers with more than their new share
  // keep it until their sessions end; the new peer gets the rest.
  std::uint64_t assign(const config::Config& config, const std::string& peer);
  void forget(const std::string& peer) { assigned_.erase(peer); }

 private:
  std::uint64_t room_;
  bool has_disk_;
  std::map<std::string, std::uint64_t> assigned_;  // by peer
};

// The share of every peer, in the order of the configuration, for `longhaul check`.
std::vector<std::uint64_t> history_shares(const config::Config& config, const MemoryPlan& plan);

// Rounded down, for display.
std::string whole_mib(std::uint64_t bytes);
// One sentence for each configured size that the limit does not allow.
std::vector<std::string> memory_warnings(const config::Config& config);

}  // namespace longhaul
