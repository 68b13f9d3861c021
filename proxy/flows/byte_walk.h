// SPDX-License-Identifier: Apache-2.0
// Sums the bytes of all flows in turns, so that the loop is not held up however many are live. Flows may come
// and go between the turns: one that ends before it was visited is counted by the next walk.
#pragma once
#include <cstddef>

#include "proxy/flows/flow_table.h"

namespace longhaul::flows {

class ByteWalk {
 public:
  static constexpr std::size_t kFlowsInTurn = 256;

  // With what ended flows have carried.
  void begin(const FlowTable& table);
  // True: the sum is complete.
  bool turn(const FlowTable& table);
  const FlowBytes& sum() const { return sum_; }

 private:
  FlowBytes sum_;
  FlowId last_ = 0;
};

}  // namespace longhaul::flows
