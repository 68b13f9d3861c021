// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/history_ring.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>

using namespace longhaul;
using namespace longhaul::dedup;

TEST_CASE("a ring of a wrong size is refused") {
  CHECK(HistoryRing::make(0).has_error());
  CHECK(HistoryRing::make(kRingStep).has_error());
  CHECK(HistoryRing::make(2 * kRingStep + 1).has_error());
  CHECK(HistoryRing::make(~std::size_t{0} / kRingStep * kRingStep).has_error());
  CHECK(HistoryRing::make(2 * kRingStep).has_value());
}

TEST_CASE("a block never straddles a multiple of the ring's size") {
  auto ring = HistoryRing::make(3 * kRingStep).value();
  CHECK(ring.head() == kRingStart);
  CHECK(ring.place(kRingStep) == kRingStart);
  ring.reserve(ring.place(1), 1);
  CHECK(ring.place(kRingStep) == kRingStart + 1);
  ring.reserve(ring.place(kRingStep), kRingStep);
  CHECK(ring.place(kRingStep - 1) == kRingStart + 1 + kRingStep);
  CHECK(ring.place(kRingStep) == 3 * kRingStep);
  CHECK_FALSE(ring.fits(kRingStart + 1 + kRingStep, kRingStep));
}

TEST_CASE("a ring holds what was written last, and nothing that was overwritten or forgotten") {
  constexpr std::size_t kSize = 4 * kRingStep;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    auto ring = HistoryRing::make(kSize).value();
    std::map<std::uint64_t, std::pair<std::size_t, std::byte>> blocks;
    std::uint64_t forgotten = 0;
    for (int step = 0; step < 200; ++step) {
      const std::size_t size = 1 + random() % (random() % 2 ? kRingStep : 100);
      // Sometimes the blocks between are still to come.
      std::uint64_t offset = ring.place(size);
      if (random() % 8 == 0) offset += random() % (2 * kSize);
      if (!ring.fits(offset, size)) continue;
      const auto fill = static_cast<std::byte>(random());
      const MutableBytes memory = ring.reserve(offset, size);
      std::memset(memory.data(), std::to_integer<int>(fill), size);
      blocks[offset] = {size, fill};
      REQUIRE(ring.head() >= offset + size);
      if (random() % 20 == 0) {
        forgotten = std::max(forgotten, ring.head() - std::min(ring.head(), random() % (2 * kSize)));
        ring.forget_before(forgotten);
      }
      for (const auto& [at, block] : blocks) {
        const bool held = at + kSize >= ring.head() && at >= forgotten;
        REQUIRE(ring.holds(at, block.first) == held);
        if (!held) continue;
        const Bytes bytes = ring.read(at, block.first);
        REQUIRE(bytes[random() % bytes.size()] == block.second);
      }
    }
    CHECK_FALSE(ring.holds(ring.head(), 1));
    CHECK_FALSE(ring.holds(ring.head() - 1, 2));
    CHECK_FALSE(ring.holds(ring.head() - 1, ~std::uint64_t{0}));
    CHECK_FALSE(ring.holds(~std::uint64_t{0}, 2));
    CHECK_FALSE(ring.fits(~std::uint64_t{0} - 1, 1));
    CHECK_FALSE(ring.fits(0, 1));
  }
}

TEST_CASE("what was left out is not held until somebody writes it, or it has left the ring") {
  constexpr std::size_t kSize = 4 * kRingStep;
  auto ring = HistoryRing::make(kSize).value();
  ring.leave_out({kRingStart + 1000, kRingStart + 3000});
  ring.reserve(kRingStart, 500);
  ring.reserve(kRingStart + 3000, 2000);
  CHECK(ring.holds(kRingStart, 1000));
  CHECK(ring.holds(kRingStart + 3000, 2000));
  CHECK_FALSE(ring.holds(kRingStart + 999, 2));
  CHECK_FALSE(ring.holds(kRingStart + 2999, 2));
  CHECK_FALSE(ring.holds(kRingStart, 5000));
  ring.reserve(kRingStart + 1000, 1500);
  CHECK(ring.holds(kRingStart, 2500));
  CHECK_FALSE(ring.holds(kRingStart, 2501));
  // A lap later other bytes stand there.
  for (int i = 0; i < 4; ++i) ring.reserve(ring.place(kRingStep), kRingStep);
  CHECK(ring.holds(ring.head() - kRingStep, kRingStep));
  CHECK(ring.holds(ring.floor() + kRingStep, kRingStep));
}

TEST_CASE("more is left out than can be remembered in detail: then too much is, and memory is bounded") {
  auto ring = HistoryRing::make(4 * kRingStep).value();
  ring.reserve(kRingStart, kRingStep);
  for (std::uint64_t i = 0; i < 20'000; ++i) ring.leave_out({kRingStart + 3 * i, kRingStart + 3 * i + 1});
  CHECK_FALSE(ring.holds(kRingStart + 9000, 1));
  CHECK_FALSE(ring.holds(kRingStart + 1, 1));
  CHECK(ring.holds(kRingStart + 60'100, 1000));
}
