// SPDX-License-Identifier: Apache-2.0
// The carriers of a session: which exist, which one sends, which others serve the streams of some policies or
// help with bulk streams, and the incomplete received frame on each.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "proxy/config/path_policy.h"
#include "proxy/link/frame_assembler.h"
#include "proxy/link/scheduler.h"
#include "proxy/link/types.h"

namespace longhaul::link {

// Routes if several lines lead to the peer.
struct PathRoutes {
  // A carrier that takes bytes of bulk streams although another one is preferred: of those that have more
  // than `backlog` to send, because what the preferred one would have sent before the helper's packet arrives
  // is left to it.
  struct Helper {
    CarrierId carrier;
    std::size_t backlog = 0;
  };
  config::PathPolicy usual = config::PathPolicy::sum;       // of streams that request none
  std::array<CarrierId, config::kPathPolicies> carriers{};  // by policy; kNoCarrier: the preferred one
  std::vector<Helper> helpers{};                            // all of them
};

class SessionCarriers {
 public:
  struct Carrier {
    CarrierId id;
    bool may_send;
    FrameAssembler assembler;
    // Takes bytes of bulk streams of the policy `sum` that have more than this to send on another carrier.
    std::optional<std::size_t> helps_above{};
  };

  void add(CarrierId id, bool may_send) { carriers_.push_back({id, may_send, {}}); }
  Carrier* find(CarrierId id) {
    const auto found = std::ranges::find(carriers_, id, &Carrier::id);
    return found == carriers_.end() ? nullptr : &*found;
  }
  // If this was the preferred carrier, the newest of the others that may send replaces it.
  void remove(CarrierId id) {
    std::erase_if(carriers_, [id](const Carrier& carrier) { return carrier.id == id; });
    std::ranges::replace(routes_.carriers, id, kNoCarrier);
    if (preferred_ != id) return;
    const auto next =
        std::find_if(carriers_.rbegin(), carriers_.rend(), [](const Carrier& c) { return c.may_send; });
    preferred_ = next == carriers_.rend() ? kNoCarrier : next->id;
  }
  void prefer(Carrier& carrier) {
    carrier.may_send = true;
    preferred_ = carrier.id;
  }
  CarrierId preferred() const { return preferred_; }  // or kNoCarrier
  void route(const PathRoutes& routes) {
    routes_ = routes;
    for (CarrierId& id : routes_.carriers)
      if (!find(id)) id = kNoCarrier;
    for (Carrier& carrier : carriers_) carrier.helps_above.reset();
    for (const PathRoutes::Helper& helper : routes.helpers)
      if (Carrier* found = find(helper.carrier)) found->helps_above = helper.backlog;
  }
  config::PathPolicy policy_for(config::PathUse use) const { return config::policy_for(use, routes_.usual); }
  // The carrier of the streams of this policy, or kNoCarrier.
  CarrierId carrier_of(config::PathPolicy policy) const {
    const CarrierId routed = routes_.carriers[static_cast<std::size_t>(policy)];
    return preferred_ == kNoCarrier || routed == kNoCarrier ? preferred_ : routed;
  }
  // The policies whose streams are sent on this carrier.
  Lanes lanes_of(CarrierId id) const {
    using config::PathPolicy;
    Lanes lanes;
    if (id == kNoCarrier) return lanes;
    for (const PathPolicy policy : {PathPolicy::sum, PathPolicy::best, PathPolicy::failover})
      if (carrier_of(policy) == id) lanes.add(policy);
    return lanes;
  }
  // Returns nullopt if the carrier is not a helper.
  std::optional<std::size_t> helps_above(CarrierId id) const {
    if (preferred_ == kNoCarrier || id == carrier_of(config::PathPolicy::sum)) return std::nullopt;
    const auto found = std::ranges::find(carriers_, id, &Carrier::id);
    return found == carriers_.end() ? std::nullopt : found->helps_above;
  }
  std::vector<CarrierId> ids() const {
    std::vector<CarrierId> ids;
    for (const Carrier& carrier : carriers_) ids.push_back(carrier.id);
    return ids;
  }

 private:
  std::vector<Carrier> carriers_;  // the last one is the newest
  CarrierId preferred_;
  PathRoutes routes_;
};

}  // namespace longhaul::link
