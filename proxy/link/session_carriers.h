// SPDX-License-Identifier: Apache-2.0
// The carriers of a session: which exist, which one sends, which others help with bulk streams, and the
// received part of a frame on each.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "proxy/link/frame_assembler.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class SessionCarriers {
 public:
  struct Carrier {
    CarrierId id;
    bool may_send;
    FrameAssembler assembler;
    // Takes bytes of bulk streams that have more than this to send, while another one is preferred.
    std::optional<std::size_t> helps_above{};
  };

  void add(CarrierId id, bool may_send) { carriers_.push_back({id, may_send, {}}); }
  Carrier* find(CarrierId id) {
    const auto found = std::ranges::find(carriers_, id, &Carrier::id);
    return found == carriers_.end() ? nullptr : &*found;
  }
  // If this was the preferred one, the newest of the others that may send becomes it.
  void remove(CarrierId id) {
    std::erase_if(carriers_, [id](const Carrier& carrier) { return carrier.id == id; });
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
  // No result: it is no helper.
  std::optional<std::size_t> helps_above(CarrierId id) const {
    if (preferred_ == kNoCarrier || id == preferred_) return std::nullopt;
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
};

}  // namespace longhaul::link
