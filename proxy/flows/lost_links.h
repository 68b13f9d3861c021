// SPDX-License-Identifier: Apache-2.0
// What happens to flows when the link or the peer is lost: decided again, reset, or in doubt. Flows take
// turns (sweeps.h).
#pragma once
#include <functional>

#include "proxy/flows/bypassing_flows.h"
#include "proxy/flows/linked_flows.h"
#include "proxy/flows/paths.h"
#include "proxy/flows/sweeps.h"

namespace longhaul::flows {

class LostLinks {
 public:
  // All references outlive this object. `on_settled`: after on_peer_gone(), when all of that peer's clients
  // are settled.
  LostLinks(modules::List modules, FlowTable& table, const Paths& paths, LinkedFlows& linked, Sweeps& sweeps,
            BypassingFlows& bypassing, std::function<void()> on_settled);

  // The link cannot be used now: our clients' flows that the server cannot have received a byte of are
  // decided again, as if they began now.
  void on_link_lost(const link::PeerLink& link);
  // Whether that is still under way.
  bool decides_anew(const link::PeerLink& link) const;
  // The peer's process has ended: its unanswered requests will not be answered.
  void on_peer_gone(const link::PeerLink& link);

 private:
  void decide_anew(FlowId id, LinkedFlow& flow);

  modules::List modules_;
  FlowTable& table_;
  const Paths& paths_;
  LinkedFlows& linked_;
  Sweeps& sweeps_;
  BypassingFlows& bypassing_;
  std::function<void()> on_settled_;
};

}  // namespace longhaul::flows
