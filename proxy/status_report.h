// SPDX-License-Identifier: Apache-2.0
// The status of the daemon as a whole, from the reports of its parts, and the rates of the last seconds.
#pragma once
#include <chrono>

#include "proxy/control/controlled.h"
#include "proxy/control/recent_rates.h"
#include "proxy/exports.h"
#include "proxy/memory_plan.h"
#include "proxy/module_host.h"
#include "proxy/peer_links.h"
#include "proxy/transparent_mode.h"

namespace longhaul {

class StatusReport {
 public:
  // The parts that report to the status. All of them outlive this object.
  struct Parts {
    const ModuleHost& modules;
    const PeerLinks& links;
    const flows::Flows& flows;
    const TransparentMode& transparent;
    const Exports& exports;
  };
  // The uptime starts now.
  StatusReport(const config::Config& config, const process::Confinement& confinement, const MemoryPlan& plan,
               Parts parts)
      : config_(config), confinement_(confinement), plan_(plan), parts_(parts) {}

  control::Status now() const;
  // Takes a sample of the counters for the rates, with the bytes of all flows so far.
  void measure(const flows::FlowBytes& bytes);

 private:
  const config::Config& config_;
  const process::Confinement& confinement_;
  const MemoryPlan& plan_;
  const Parts parts_;
  control::RecentRates rates_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

// The shares of [limits] memory and their use, from what the parts have reported.
std::vector<control::MemoryPart> memory_parts(const MemoryPlan& plan, const control::Status& status,
                                              std::uint64_t credit_bytes, std::uint64_t retained_bytes);

}  // namespace longhaul
