// SPDX-License-Identifier: Apache-2.0
// The records of all live flows. The flow's own code updates its record; the control API and the metrics read
// it. Used on one event loop, so there are no locks.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "proxy/config/features.h"
#include "proxy/flows/accepted.h"
#include "proxy/flows/reason.h"
#include "proxy/flows/reset_by.h"
#include "proxy/link/block_counters.h"
#include "proxy/modules/counters.h"

namespace longhaul::flows {

using FlowId = std::uint64_t;

// Bytes of a flow, or of many, seen from this proxy. LAN: plain bytes. WAN: bytes of the flow's frames,
// before TLS. In: read from that side's socket; out: written to it.
struct FlowBytes {
  std::uint64_t lan_in = 0, lan_out = 0, wan_in = 0, wan_out = 0;
  FlowBytes& operator+=(const FlowBytes& other);
  bool operator==(const FlowBytes&) const = default;
};

// The half of a module that runs, or ran, in a flow.
struct ModuleRecord {
  std::string_view name;     // refers to the list of modules, which lives as long as the program
  bool steps_aside = false;  // everything passes unchanged now
  modules::Counters counters;
  std::string detail;  // modules::Module::detail()
};

struct FlowRecord {
  FlowId id = 0;
  boost::asio::ip::tcp::endpoint client;
  Destination destination;
  Origin origin = Origin::forward;
  bool far_side = false;               // true on the server's side of the link
  std::string peer;                    // empty if the flow bypasses the link
  Reason reason = reasons::optimised;  // changed only by FlowTable::give_reason, which counts
  config::Features features;
  std::chrono::steady_clock::time_point started;
  ResetBy reset_by = ResetBy::nobody;  // the first party that reset the flow
  FlowBytes bytes;
  link::BlockCounters blocks;
  std::unique_ptr<ModuleRecord> module;  // null if bytes pass unchanged
};

// Sums of all flows to one port.
struct PortTotals {
  std::uint64_t started = 0;
  FlowBytes bytes;
  link::BlockCounters blocks;
};
using TotalsByPort = std::map<std::uint16_t, PortTotals>;

// Sums of all flows with one peer and one module.
struct ModuleTotals {
  std::uint64_t flows = 0;
  std::uint64_t live = 0;
  modules::Counters counters;
};
using TotalsByModule = std::map<std::pair<std::string, std::string_view>, ModuleTotals>;  // peer, module

struct FlowTotals {
  std::uint64_t started = 0;
  std::uint64_t ended = 0;  // including the reset ones
  std::uint64_t reset = 0;
  CountByParty reset_by{};  // the reset ones, where the party is known
  FlowBytes bytes;          // of ended flows; `bytes_so_far` counts the live ones too
  CountByReason by_reason;  // how often the reason was given to a flow: at its start, and when it changed
  CountByReason live_by_reason;
};

class FlowTable {
 public:
  // The table assigns the id; ids count up from 1 and are never reused. The record's address stays valid
  // until `remove`.
  FlowRecord& add(FlowRecord record);
  void give_reason(FlowRecord& record, Reason reason);
  // The flow continues outside the link, without its module.
  void leave_link(FlowRecord& record, Reason reason);

  enum class End : std::uint8_t { closed, reset };
  void remove(FlowId id, End end);
  // Called with each record before it is removed.
  std::function<void(const FlowRecord&)> on_removed;

  // The flows that ended most recently, oldest first, so that short flows can be explained afterwards.
  static constexpr std::size_t kEndedKept = 256;
  struct Ended {
    FlowRecord record;
    End end;
  };
  const std::deque<Ended>& ended() const { return ended_; }

  const std::map<FlowId, FlowRecord>& live() const { return live_; }
  const FlowTotals& totals() const { return totals_; }
  // Sum over ended and live flows: never decreases. Walks over all live flows once.
  FlowBytes bytes_so_far() const;
  // The same by port of the destination, for the first kPortsKept ports seen; port 0 holds the sum of all
  // others.
  static constexpr std::size_t kPortsKept = 128;
  TotalsByPort by_port_so_far() const;
  // The same by peer and module.
  TotalsByModule by_module_so_far() const;

 private:
  std::map<FlowId, FlowRecord> live_;
  std::deque<Ended> ended_;
  FlowTotals totals_;
  TotalsByPort by_port_;      // bytes and blocks of ended flows
  TotalsByModule by_module_;  // of ended flows
  FlowId next_id_ = 1;
};

}  // namespace longhaul::flows
