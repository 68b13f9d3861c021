// SPDX-License-Identifier: Apache-2.0
// Handles flows when the link or the peer is lost: they are decided again, reset, or in doubt. Works in
// several turns (sweeps.h).
#pragma once
#include <functional>

#include "proxy/flows/bypassing_flows.h"
#include "proxy/flows/linked_flows.h"
#include "proxy/flows/paths.h"
#include "proxy/flows/sweeps.h"

namespace longhaul::flows {

class LostLinks {
 public:
  // All references outlive this object. `on_settled` is called after on_peer_gone(), when all of that peer's
  // clients are settled.
  LostLinks(modules::List modules, FlowTable& table, const Paths& paths, LinkedFlows& linked, Sweeps& sweeps,
            BypassingFlows& bypassing, std::function<void()> on_settled);

  // The link cannot be used now: flows of this site's clients of which the server cannot have received a byte
  // are decided again, as if they began now.
  void on_link_lost(const link::PeerLink& link);
  // Whether on_link_lost() is still in progress for this link.
  bool decides_anew(const link::PeerLink& link) const;
  // The peer's process has ended: it will not answer pending requests to connect.
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
