// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/flow_ending.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace longhaul::flows {

void FlowEnding::finish(End end) {
  if (std::exchange(is_over_, true)) return;
  end == End::closed ? wan_.count_everything() : wan_.count();
  lan_.up = lan_.down = LanSide::Pump::done;
  auto executor = lan_.executor();
  if (end == End::closed) {
    lan_.close_gently();
    // A module may end both directions before the peer has ended its own. What was sent stays valid.
    if (wan_.stream() && !wan_.stream()->may_finish()) wan_.stream()->abort();
  } else {
    lan_.close();
  }
  wan_.release();
  // Callers up the stack are still inside the flow.
  boost::asio::post(executor, [alive = lan_.alive(), this, end] {
    if (!*alive) return;
    OnEnd on_end = std::move(on_end_);
    on_end(end);
  });
}

void FlowEnding::reset() {
  if (is_over_) return;
  if (wan_.stream() && !wan_.stream()->may_finish()) wan_.stream()->abort();
  lan_.reset();
  finish(End::reset);
}

void FlowEnding::reset_after_delivery() {
  late_reset_.after_delivery([this] { reset(); });
}

void FlowEnding::reset_in_the_end() {
  late_reset_.in_the_end([this] { reset(); });
}

void FlowEnding::leave() {
  is_over_ = true;
  wan_.release();
}

}  // namespace longhaul::flows
