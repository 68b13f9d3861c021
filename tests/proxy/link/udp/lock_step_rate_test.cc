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

struct Found {
  double block_seconds = 0;    // once the rate had time to be found
  double remembered_rate = 0;  // share of the line
};
Found read_blocks(std::uint64_t seed, Duration rtt, double loss,
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
  const auto share = [](std::uint64_t bits) { return static_cast<double>(bits) / (kMegabits * 1e6); };
  const auto memory = pair.b.carrier.rate().path_memory();
  return {seconds(*took) / kBlocks, memory ? share(8 * memory->rate) : 0};
}

}  // namespace

TEST_CASE("a request-response client gets the line's rate even if a lower one is remembered") {
  const double wrong = GENERATE(0.35, 0.7);
  const double loss = GENERATE(0.0, 0.05);
  const Duration rtt = GENERATE(Duration(1ms), Duration(30ms));
  const std::uint64_t seed = GENERATE(1, 2);
  INFO(wrong << " of the line, loss " << loss << ", " << seconds(rtt) << " s, seed " << seed);
  const auto remembered = static_cast<std::uint64_t>(wrong * kMegabits * 1e6 / 8);
  const Found right = read_blocks(seed, rtt, loss);
  const Found found = read_blocks(seed, rtt, loss, udp::PathMemory{remembered, rtt});
  INFO("seconds for a block " << found.block_seconds << ", nothing remembered " << right.block_seconds);
  CHECK(found.remembered_rate > 0.85);
  CHECK(found.remembered_rate < 1.25);
  if (loss == 0) CHECK(found.block_seconds < 1.05 * right.block_seconds);
}

// A loss that only a timer shows took 25 ms and more: 13.9 ms for a block.
TEST_CASE("the loss of a block's last packets is detected soon") {
  const std::uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  CHECK(read_blocks(seed, 1ms, 0.1).block_seconds < 0.0134);
}
