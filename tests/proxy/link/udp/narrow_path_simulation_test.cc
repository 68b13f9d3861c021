// SPDX-License-Identifier: Apache-2.0
// Paths that carry less than before: larger packets are dropped, or repairs would fill the line. What a
// carrier sends then.
#include <catch2/catch.hpp>
#include <vector>

#include "../simulated_flow.h"
#include "simulated_udp_pair.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

TEST_CASE("of the probes after a timeout the first is full, and the second fits any path") {
  UdpPair pair({.line = line_of(20, 60ms)});
  FlowsOn<UdpPair> flows(pair);
  flows.start(1ull << 40, 0);
  pair.run_for(5s);
  std::vector<std::uint32_t> sent;
  pair.line.a_to_b().tap([&](const simulator::Datagram& datagram) { sent.push_back(datagram.ip_bytes); });
  pair.line.cut();
  const auto& packets = pair.a.carrier.flight().sent();
  REQUIRE(pair.run_until(
      [&] {
        if (packets.timeouts_in_a_row() == 0) sent.clear();
        return packets.timeouts_in_a_row() == 1;
      },
      5s));
  CHECK(sent == std::vector<std::uint32_t>{1500, 1228});
}

TEST_CASE("a path that drops larger packets from now on is noticed after the first timeout") {
  UdpPair pair({.line = line_of(20, 60ms)});
  FlowsOn<UdpPair> flows(pair);
  flows.start(1ull << 40, 0);
  pair.run_for(5s);
  auto narrow = pair.line.a_to_b().config();
  narrow.mtu_bytes = 1400;
  pair.line.a_to_b().change(narrow);
  const auto& flight = pair.a.carrier.flight();
  REQUIRE(pair.run_until([&] { return flight.sent().timeouts_in_a_row() == 1; }, 5s));
  CHECK(flight.mtu().current() == 1472);
  pair.run_for(70ms);
  CHECK(flight.mtu().current() == udp::PathMtu::kBase);
  CHECK(pair.a.failures == 0);
}

TEST_CASE("on a slow line that loses much, repairs leave room for the data that waits") {
  UdpPair pair({.line = line_of(2, 500ms, 0.25)});
  FlowsOn<UdpPair> flows(pair);
  REQUIRE(pair.run_until([&] { return pair.up(); }, 30s));
  // Interactive flows: each is too short to count as bulk.
  for (int i = 0; i < 40; ++i) flows.start(30'000, 0);
  pair.run_for(3s);
  const auto before = pair.a.carrier.counters();
  pair.run_for(3s);
  const auto after = pair.a.carrier.counters();
  CHECK_FALSE(flows.all_complete());
  CHECK(after.repairs_sent > before.repairs_sent);
  CHECK(after.repairs_sent - before.repairs_sent < (after.packets_sent - before.packets_sent) * 55 / 100);
  CHECK(pair.run_until([&] { return flows.all_complete(); }, 60s));
  CHECK(flows.all_right());
}
