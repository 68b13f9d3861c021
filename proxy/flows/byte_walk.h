// SPDX-License-Identifier: Apache-2.0
// Sums the bytes of all flows in several turns, so that many live flows do not block the loop. Flows may
// start and end between the turns: one that ends before it was visited is counted by the next walk.
#pragma once
#include <cstddef>

#include "proxy/flows/flow_table.h"

namespace longhaul::flows {

class ByteWalk {
 public:
  static constexpr std::size_t kFlowsInTurn = 256;

  // Starts with the bytes of flows that have ended.
  void begin(const FlowTable& table);
  // Returns true when the sum is complete.
  bool turn(const FlowTable& table);
  const FlowBytes& sum() const { return sum_; }

 private:
  FlowBytes sum_;
  FlowId last_ = 0;
};

}  // namespace longhaul::flows
