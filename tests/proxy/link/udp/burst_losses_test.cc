// SPDX-License-Identifier: Apache-2.0
// Tests that losses at the ends of bursts are told from random ones, outages and full queues.
#include "proxy/link/udp/burst_losses.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/proxy/link/numbers.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;

namespace {

// Bursts of `packets`, of which `is_lost` decides by the number in the burst.
template <class IsLost>
void send(BurstLosses& losses, unsigned bursts, unsigned packets, IsLost is_lost) {
  static PacketNumber number;  // each detector sees larger ones than those before
  for (unsigned burst = 0; burst < bursts; ++burst) {
    losses.on_burst(number, packets);
    for (unsigned i = 0; i < packets; ++i)
      if (is_lost(burst, i)) losses.on_lost(number + i);
    number += packets;
    losses.settle(number);
  }
}

}  // namespace

TEST_CASE("BurstLosses: a path that drops the ends of bursts is found by trying both ways") {
  BurstLosses losses;
  // Only what leaves together is dropped.
  const auto path = [&](unsigned, unsigned i) { return !losses.one_by_one() && i >= 25; };
  send(losses, BurstLosses::kMany - 1, 40, path);
  CHECK_FALSE(losses.one_by_one());
  send(losses, 1, 40, path);
  CHECK(losses.one_by_one());
  CHECK_FALSE(losses.drops_bursts());
  send(losses, BurstLosses::kPhase, 40, path);
  CHECK_FALSE(losses.one_by_one());
  send(losses, BurstLosses::kBack, 40, path);
  CHECK(losses.drops_bursts());
  send(losses, 10'000, 40, path);
  CHECK(losses.drops_bursts());
}

TEST_CASE("BurstLosses: a path that drops some bursts as a whole is found") {
  BurstLosses losses;
  send(losses, 300, 4, [&](unsigned burst, unsigned) { return !losses.one_by_one() && burst % 3 != 0; });
  CHECK(losses.drops_bursts());
}

TEST_CASE("BurstLosses: a full queue that drops the ends whatever is done is not blamed on bursts") {
  BurstLosses losses;
  for (int round = 0; round < 100; ++round) {
    send(losses, 100, 16, [](unsigned, unsigned i) { return i >= 10; });
    CHECK_FALSE(losses.drops_bursts());
  }
}

TEST_CASE("BurstLosses: random losses and outages are not blamed on bursts") {
  std::mt19937 random(7);
  for (const double rate : {0.001, 0.01, 0.05, 0.2}) {
    for (const unsigned packets : {3u, 4u, 32u}) {
      BurstLosses losses;
      std::bernoulli_distribution is_lost(rate);
      send(losses, 20'000, packets, [&](unsigned, unsigned) { return is_lost(random); });
      CHECK_FALSE(losses.drops_bursts());
    }
  }
  BurstLosses losses;
  send(losses, 100'000, 32, [](unsigned burst, unsigned) { return burst % 1000 >= 900; });
  CHECK_FALSE(losses.drops_bursts());
}

TEST_CASE("BurstLosses: lost packets of no burst and bursts that are never settled are harmless") {
  BurstLosses losses;
  losses.on_lost(3_packet);
  losses.on_burst(10_packet, 2);  // too short
  losses.on_lost(11_packet);
  for (std::uint64_t i = 0; i < 2 * BurstLosses::kMost; ++i) losses.on_burst(100_packet + 8 * i, 8);
  losses.on_lost(101_packet);  // of one that was forgotten
  losses.settle(1'000'000_packet);
  CHECK_FALSE(losses.one_by_one());
}
