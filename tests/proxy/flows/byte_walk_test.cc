// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/byte_walk.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace longhaul::flows {
namespace {

FlowBytes whole_walk(const FlowTable& table) {
  ByteWalk walk;
  walk.begin(table);
  while (!walk.turn(table)) {
  }
  return walk.sum();
}

}  // namespace

TEST_CASE("a walk in turns sums what one walk over all flows does") {
  for (const std::size_t flows : {0u, 1u, 255u, 256u, 257u, 1000u}) {
    FlowTable table;
    for (std::size_t i = 0; i < flows; ++i) table.add({}).bytes = {i, 2 * i, 3 * i, 4 * i};
    table.remove(table.add({}).id, FlowTable::End::closed);
    CHECK(whole_walk(table) == table.bytes_so_far());
  }
}

TEST_CASE("flows that come and go during a walk are never counted twice") {
  std::mt19937_64 random(7);
  FlowTable table;
  std::vector<FlowId> live;
  const auto add = [&] {
    FlowRecord& flow = table.add({});
    flow.bytes.lan_in = random() % 1000;
    live.push_back(flow.id);
  };
  for (int i = 0; i < 2000; ++i) add();
  for (int round = 0; round < 50; ++round) {
    ByteWalk walk;
    walk.begin(table);
    while (!walk.turn(table))
      for (int i = 0; i < 20 && !live.empty(); ++i) {
        std::swap(live[random() % live.size()], live.back());
        table.remove(live.back(), FlowTable::End::closed);
        live.pop_back();
        add();
      }
    CHECK(walk.sum().lan_in <= table.bytes_so_far().lan_in);
  }
}

}  // namespace longhaul::flows
