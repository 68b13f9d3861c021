// SPDX-License-Identifier: Apache-2.0
// Every live flow and what a person may ask of it. The flow's own coroutine updates its record; the control API
// and the metrics read. Lives on the one loop that owns the flows, so there are no locks.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "proxy/config/features.h"
#include "proxy/flows/accepted.h"
#include "proxy/flows/reason.h"

namespace longhaul::flows {

using FlowId = std::uint64_t;

struct FlowRecord {
  FlowId id = 0;
  boost::asio::ip::tcp::endpoint client;
  Destination destination;
  Origin origin = Origin::forward;
  bool far_side = false;  // true on the proxy that stands before the server
  std::string peer;       // empty: not over a link
  Reason reason = Reason::optimised;
  config::Features features;
  std::chrono::steady_clock::time_point started;
  // Bytes of the flow seen from this proxy. LAN: plain bytes. WAN: bytes of this flow's frames, before TLS.
  std::uint64_t lan_in = 0, lan_out = 0, wan_in = 0, wan_out = 0;
};

struct FlowTotals {
  std::uint64_t started = 0, ended = 0, reset = 0;
  std::uint64_t lan_in = 0, lan_out = 0, wan_in = 0, wan_out = 0;  // of ended flows
  std::array<std::uint64_t, kReasonTable.size()> by_reason{};      // counted when a flow gets the reason
};

class FlowTable {
 public:
  // The record lives until `remove`; ids count up from 1 and are never used twice.
  FlowRecord& add(FlowRecord record);
  void give_reason(FlowRecord& record, Reason reason);
  void remove(FlowId id, bool was_reset);
  const std::map<FlowId, std::unique_ptr<FlowRecord>>& live() const { return live_; }
  const FlowTotals& totals() const { return totals_; }

 private:
  std::map<FlowId, std::unique_ptr<FlowRecord>> live_;
  FlowTotals totals_;
  FlowId next_id_ = 1;
};

}  // namespace longhaul::flows
