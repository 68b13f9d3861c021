// SPDX-License-Identifier: Apache-2.0
// The end of a flow over the link: once, with its socket closed or reset and its stream released, and told to
// the owner from the event loop. What ends a flow, and by whom it was reset, is decided in linked_flow.h.
#pragma once
#include <functional>

#include "proxy/flows/lan_side.h"
#include "proxy/flows/late_reset.h"
#include "proxy/flows/wan_side.h"

namespace longhaul::flows {

class FlowEnding {
 public:
  enum class End : std::uint8_t { closed, reset };
  // Called once, from the event loop; may destroy this object and its owner.
  using OnEnd = std::function<void(End)>;

  // Both sides outlive this object.
  FlowEnding(LanSide& lan, WanSide& wan, OnEnd on_end)
      : lan_(lan), wan_(wan), on_end_(std::move(on_end)), late_reset_(lan) {}

  bool is_over() const { return is_over_; }
  void finish(End end);
  // Resets this side's connection, and tells the other side unless it is done.
  void reset();
  // The same as soon as all written data has been delivered.
  void reset_after_delivery();
  // The same at the end of the limit, whether or not the client has read everything.
  void reset_in_the_end();
  bool waits_to_reset() const { return late_reset_.waits(); }
  // The flow is over without OnEnd: its client was taken back, and its owner destroys it.
  void leave();

 private:
  LanSide& lan_;
  WanSide& wan_;
  OnEnd on_end_;
  LateReset late_reset_;
  bool is_over_ = false;
};

}  // namespace longhaul::flows
