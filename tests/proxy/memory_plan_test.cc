// SPDX-License-Identifier: Apache-2.0
// However the configuration wishes, the parts stay within the cap.
#include "proxy/memory_plan.h"

#include <catch2/catch.hpp>
#include <random>

using namespace longhaul;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

config::Config configured(std::size_t peers, std::uint64_t cap = 2048 * kMiB) {
  config::Config config;
  config.limits.memory_bytes = cap;
  for (std::size_t i = 0; i < peers; ++i) {
    config.peers.emplace_back();
    config.peers.back().name = std::string(1, static_cast<char>('a' + i % 26)) + std::to_string(i / 26);
  }
  return config;
}

}  // namespace

TEST_CASE("one peer gets all that the defaults promise, without a warning") {
  const auto config = configured(1);
  REQUIRE(config::Limits().memory_bytes == config.limits.memory_bytes);
  const MemoryPlan plan = memory_plan(config);
  CHECK(history_shares(config, plan) == std::vector{256 * kMiB});
  CHECK(plan.history_bytes == 568 * kMiB);
  CHECK(plan.disk_bytes == config.dictionary.disk_bytes);
  CHECK(plan.disk_queue_bytes == 64 * kMiB);
  CHECK(plan.disk_loading_bytes == 64 * kMiB);
  CHECK(plan.store_bytes == 184 * kMiB);
  CHECK(plan.ahead_bytes == 256 * kMiB);
  CHECK(plan.credit_bytes >= 192 * kMiB);
  CHECK(plan.retained_bytes >= 192 * kMiB);
  CHECK(plan.module_bytes >= 128 * kMiB);
  CHECK(plan.sum_bytes() <= plan.cap_bytes);
  CHECK(memory_warnings(config).empty());
}

TEST_CASE("for any configuration the parts stay within the cap, and flows have a share") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    auto config = configured(random() % 120, 16 * kMiB << random() % 14);
    config.limits.memory_bytes += random() % (16 * kMiB);
    config.dictionary.disk_bytes = random() % 4 ? 64 * kMiB << random() % 19 : 0;
    config.dictionary.memory_bytes = random() % 4 ? 16 * kMiB << random() % 10 : 0;
    for (auto& peer : config.peers)
      if (random() % 3 == 0)
        peer.dictionary_memory_bytes = random() % 4 ? 16 * kMiB + random() % (1 << 30) : 0;
    const MemoryPlan plan = memory_plan(config);
    CAPTURE(i, config.peers.size(), plan.cap_bytes, config.dictionary.disk_bytes);
    REQUIRE(plan.sum_bytes() <= plan.cap_bytes);
    REQUIRE(plan.credit_bytes + plan.retained_bytes + plan.module_bytes >= plan.cap_bytes / 4 - 64);
    REQUIRE(plan.history_bytes + plan.store_bytes <= plan.cap_bytes / 2);
    REQUIRE(plan.disk_bytes <= config.dictionary.disk_bytes);
    // The shares cost what the plan says.
    std::uint64_t cost = 0;
    for (std::uint64_t history : history_shares(config, plan)) {
      REQUIRE((history == 0 || history >= config::Dictionary::kMinMemory));
      if (history > 0) cost += history / 16 * (plan.disk_bytes ? 35 : 33) + (plan.disk_bytes ? 8 * kMiB : 0);
    }
    REQUIRE(cost <= plan.history_bytes);
  }
}

TEST_CASE("peers share the memory; one that needs little gets that, and the operator is informed") {
  auto config = configured(4);
  config.peers[2].dictionary_memory_bytes = 32 * kMiB;
  config.peers[3].dictionary_memory_bytes = 0;
  const auto shares = history_shares(config, memory_plan(config));
  CHECK(shares[0] == shares[1]);
  CHECK(shares[0] > 128 * kMiB);
  CHECK(shares[0] < 256 * kMiB);
  CHECK(shares[2] == 32 * kMiB);
  CHECK(shares[3] == 0);
  const auto warnings = memory_warnings(config);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0],
             Catch::Contains("[limits] memory (2GiB) makes the dictionaries in memory smaller: \"a0\" ") &&
                 Catch::Contains("instead of 256MiB, \"b0\" ") && !Catch::Contains("\"c0\""));
}

TEST_CASE("with too many peers for a dictionary each, the first ones have one") {
  auto config = configured(100);
  const auto shares = history_shares(config, memory_plan(config));
  CHECK(shares.front() >= 16 * kMiB);
  CHECK(shares.back() == 0);
  CHECK(std::is_sorted(shares.rbegin(), shares.rend(), [](auto a, auto b) { return (a > 0) < (b > 0); }));
}

TEST_CASE("a small cap leaves no dictionary on disk, and a large disk is used as far as its index fits") {
  auto config = configured(1, 64 * kMiB);
  CHECK(memory_plan(config).disk_bytes == 0);
  CHECK_THAT(memory_warnings(config).at(0),
             Catch::Contains("has no room for the index of the dictionary on disk") &&
                 Catch::Contains("\"196MiB\""));
  config.limits.memory_bytes = 196 * kMiB;
  CHECK(memory_plan(config).disk_bytes == 256 * kMiB);
  config = configured(1);
  config.dictionary.disk_bytes = 1ull << 40;
  CHECK(memory_plan(config).disk_bytes == 92ull << 30);
  CHECK_THAT(memory_warnings(config).at(0),
             Catch::Contains("has room to index only 92GiB of the dictionary on disk"));
  config.dictionary.disk_bytes = 0;
  CHECK(memory_warnings(config).empty());
}

TEST_CASE("a peer that is added later gets the rest until the others begin new sessions") {
  auto config = configured(1);
  const MemoryPlan plan = memory_plan(config);
  HistoryRoom room(plan.history_bytes, true);
  CHECK(room.assign(config, "a0") == 256 * kMiB);
  config = configured(2);
  CHECK(room.assign(config, "b0") == 0);
  const std::uint64_t half = room.assign(config, "a0");
  CHECK(half > 100 * kMiB);
  CHECK(half < 128 * kMiB);
  CHECK(room.assign(config, "b0") >= half - 65'536);  // rounded down
  room.forget("b0");
  CHECK(room.assign(configured(1), "a0") == 256 * kMiB);
  CHECK(room.assign(config, "nobody") == 0);
}
