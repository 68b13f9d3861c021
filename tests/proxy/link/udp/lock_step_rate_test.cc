// SPDX-License-Identifier: Apache-2.0
// Clients in lock step never keep a line busy for long: a wrong idea of its rate has to be found out all the
// same.
#include <catch2/catch.hpp>

#include "../lock_step.h"
#include "../simulated_flow.h"
#include "proxy/link/udp/rate_law.h"
#include "simulated_udp_pair.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;
using longhaul::link::udp::seconds;

namespace {

constexpr double kMegabits = 51.84;
constexpr std::uint64_t kBlock = 60'000;
constexpr unsigned kBlocks = 200;

// For a block, once the rate had time to be found.
double block_seconds(std::uint64_t seed, Duration rtt, double loss,
                     const std::optional<udp::PathMemory>& path = {}) {
  UdpPair pair({.seed = seed, .line = line_of(kMegabits, rtt, loss), .path = path});
  FlowsOn<UdpPair> flows(pair);
  REQUIRE(pair.run_until([&] { return pair.up(); }, 30s));
  Flow& flow = flows.start_open(FlowsOn<UdpPair>::simple_request());
  pair.run_for(1s);
  REQUIRE(read_in_lock_step(pair, flow, kBlock, kBlocks, rtt / 2, 60s));
  const auto took = read_in_lock_step(pair, flow, kBlock, kBlocks, rtt / 2, 60s);
  REQUIRE(took);
  REQUIRE(flows.all_right());
  return seconds(*took) / kBlocks;
}

}  // namespace

TEST_CASE("a client in lock step gets the line's rate although another is remembered") {
  const double wrong = GENERATE(0.35, 0.7, 1.5);
  const double loss = GENERATE(0.0, 0.05);
  const Duration rtt = GENERATE(Duration(1ms), Duration(30ms));
  const std::uint64_t seed = GENERATE(1, 2);
  INFO(wrong << " of the line, loss " << loss << ", " << seconds(rtt) << " s, seed " << seed);
  const auto remembered = static_cast<std::uint64_t>(wrong * kMegabits * 1e6 / 8);
  const double right = block_seconds(seed, rtt, loss);
  const double found = block_seconds(seed, rtt, loss, udp::PathMemory{remembered, rtt});
  INFO("seconds for a block, nothing remembered " << right << ", this remembered " << found);
  CHECK(found < (loss > 0 ? 1.12 : 1.05) * right);  // losses fall differently
}

// A loss that only a timer shows took 25 ms and more: 13.9 ms for a block.
TEST_CASE("the lost end of a block is missed soon") {
  const std::uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  CHECK(block_seconds(seed, 1ms, 0.1) < 0.0134);
}
