// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/byte_walk.h"

namespace longhaul::flows {

void ByteWalk::begin(const FlowTable& table) {
  sum_ = table.totals().bytes;
  last_ = 0;
}

bool ByteWalk::turn(const FlowTable& table) {
  auto flow = table.live().upper_bound(last_);
  for (std::size_t visited = 0; visited < kFlowsInTurn && flow != table.live().end(); ++visited, ++flow) {
    sum_ += flow->second.bytes;
    last_ = flow->first;
  }
  return flow == table.live().end();
}

}  // namespace longhaul::flows
