// SPDX-License-Identifier: Apache-2.0
#include "cache/hook_index.h"

#include <catch2/catch.hpp>

#include "tests/cache/segments.h"

namespace longhaul::cache {
namespace {

using namespace test;

bool finds(const HookIndex& index, std::uint64_t fingerprint, Slot slot, std::uint32_t offset) {
  std::array<HookIndex::Place, HookIndex::kBucket> places;
  std::size_t found = index.find(fingerprint, places);
  for (std::size_t i = 0; i < found; ++i)
    if (places[i].slot == slot &&
        places[i].offset == offset / reduction::kHookGranule * reduction::kHookGranule)
      return true;
  return false;
}

std::size_t count(const HookIndex& index, std::uint64_t fingerprint) {
  std::array<HookIndex::Place, HookIndex::kBucket> places;
  return index.find(fingerprint, places);
}

TEST_CASE("hooks are found, including the last byte of the largest segment and the last slot") {
  auto index = std::make_unique<HookIndex>();
  CHECK(count(*index, 1) == 0);
  index->insert(~0ull, kMaxSlot, reduction::kMaxSegmentBytes - 1);
  index->insert(0, 1, 0);
  CHECK(finds(*index, ~0ull, kMaxSlot, reduction::kMaxSegmentBytes - 1));
  CHECK(finds(*index, 0, 1, 0));
  CHECK(count(*index, 0) == 1);
  index->insert(0, 1, 5);
  CHECK(count(*index, 0) == 1);
}

TEST_CASE("hooks of frequent content do not evict hooks of rare content") {
  auto index = std::make_unique<HookIndex>();
  for (Slot slot = 1; slot <= 1000; ++slot) {
    index->insert(7, slot, 0);
    index->insert(mixed(slot), slot, 0);
  }
  CHECK(count(*index, 7) >= 1);
  CHECK(count(*index, 7) <= 4);
  std::size_t found = 0;
  for (Slot slot = 1; slot <= 1000; ++slot) found += finds(*index, mixed(slot), slot, 0);
  CHECK(found >= 998);
}

TEST_CASE("hooks of a retired slot are not found, and the slot is clean when it is reused") {
  auto index = std::make_unique<HookIndex>();
  constexpr std::uint64_t kHooks = 500;
  std::deque<std::pair<Slot, std::uint64_t>> living;  // and where its fingerprints begin
  std::vector<Slot> free;
  Slot next = 1;
  std::uint64_t fingerprint = 0;
  std::size_t missing = 0;
  for (int round = 0; round < 400; ++round) {
    Slot slot = free.empty() ? next++ : free.back();
    if (!free.empty()) free.pop_back();
    // Nothing of its former life.
    for (std::uint64_t i = 1; i <= fingerprint && i <= 2000; ++i)
      REQUIRE_FALSE(finds(*index, mixed(fingerprint + 1 - i), slot, 0));
    living.emplace_back(slot, fingerprint);
    for (std::uint64_t i = 0; i < kHooks; ++i) index->insert(mixed(++fingerprint), slot, 0);
    while (Slot swept = index->poll_swept()) free.push_back(swept);
    if (living.size() > 50) {
      auto [gone, first] = living.front();
      living.pop_front();
      index->retire(gone);
      for (std::uint64_t i = 1; i <= kHooks; ++i) REQUIRE(count(*index, mixed(first + i)) == 0);
    }
    if (round % 50 == 0)
      for (auto [alive, first] : living)
        for (std::uint64_t i = 1; i <= kHooks; ++i) missing += !finds(*index, mixed(first + i), alive, 0);
  }
  CHECK(next < 80);  // slots are used again
  CHECK(missing < 400 / 50 * 50 * kHooks / 12);
  index->clear();
  CHECK(count(*index, mixed(fingerprint)) == 0);
}

TEST_CASE("hooks that were never put are practically never found") {
  auto index = std::make_unique<HookIndex>();
  for (std::uint64_t i = 0; i < 200'000; ++i) index->insert(mixed(i), 1 + static_cast<Slot>(i % 100), 0);
  std::size_t wrong = 0;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) wrong += count(*index, mixed(i + (1ull << 40)));
  CHECK(wrong < 5);
}

}  // namespace
}  // namespace longhaul::cache
