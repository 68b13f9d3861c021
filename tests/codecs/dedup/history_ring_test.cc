// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/history_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <thread>

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

TEST_CASE("a ring holds the latest bytes, and nothing that was overwritten or dropped") {
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

TEST_CASE("a skipped range is not held until it is written") {
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

TEST_CASE("when too many gaps exist to record each, the ring drops more and its memory stays bounded") {
  auto ring = HistoryRing::make(4 * kRingStep).value();
  ring.reserve(kRingStart, kRingStep);
  for (std::uint64_t i = 0; i < 20'000; ++i) ring.leave_out({kRingStart + 3 * i, kRingStart + 3 * i + 1});
  CHECK_FALSE(ring.holds(kRingStart + 9000, 1));
  CHECK_FALSE(ring.holds(kRingStart + 1, 1));
  CHECK(ring.holds(kRingStart + 60'100, 1000));
}

namespace {
// Bytes of [begin, begin + size) of a ring's memory that are there.
std::size_t resident(const std::byte* begin, std::size_t size) {
  std::vector<unsigned char> pages(size / 4096);
  REQUIRE(::mincore(const_cast<std::byte*>(begin), size, pages.data()) == 0);
  return 4096 * static_cast<std::size_t>(std::ranges::count_if(pages, [](auto page) { return page & 1; }));
}
bool becomes_resident(const std::byte* begin, std::size_t size) {
  for (int i = 0; i < 500 && resident(begin, size) < size; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return resident(begin, size) == size;
}
// Makes pages, which a kernel before 5.14 does not do ahead.
bool kernel_makes_pages() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool makes = ::madvise(page, 4096, MADV_POPULATE_WRITE) == 0;
  ::munmap(page, 4096);
  return makes;
}
}  // namespace

TEST_CASE("memory is allocated a little ahead of the head, and in quiet moments as much as was used") {
  if (!kernel_makes_pages()) return;
  constexpr std::size_t kPage = LazyMemory::kHugePage;
  auto ring = HistoryRing::make(16 * kPage).value();
  const auto write = [&](std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += kRingStep) {
      const MutableBytes memory = ring.reserve(ring.place(kRingStep), kRingStep);
      std::memset(memory.data(), 7, memory.size());
    }
  };
  write(kRingStep);
  const std::byte* memory = ring.read(kRingStart, 1).data() - kRingStart;
  ring.on_quiet();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(resident(memory, 16 * kPage) < kPage);  // an idle peer costs little
  write(kPage);
  CHECK(becomes_resident(memory + kPage, kPage));
  CHECK(resident(memory + 3 * kPage, 13 * kPage) == 0);
  write(4 * kPage);
  CHECK(becomes_resident(memory + 5 * kPage, kPage / 2));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(resident(memory + 8 * kPage, 8 * kPage) == 0);
  ring.on_quiet();
  CHECK(becomes_resident(memory + 5 * kPage, 5 * kPage));
  CHECK(resident(memory + 12 * kPage, 4 * kPage) == 0);
  write(10 * kPage);
  CHECK(becomes_resident(memory + kPage, 15 * kPage));
  // What was given back is made again, as it is needed.
  ring.forget_before(ring.head());
  CHECK(resident(memory, 14 * kPage) == 0);
  write(kPage);
  CHECK(becomes_resident(memory, kPage / 4));
  CHECK(resident(memory + 5 * kPage, 8 * kPage) == 0);
  write(40 * kPage);
  CHECK(ring.holds(ring.head() - 15 * kPage, kRingStep));
}

TEST_CASE("memory that is being allocated may be released at any time") {
  for (int i = 0; i < 200; ++i) {
    auto memory = LazyMemory::make(32 << 20).value();
    memory.make_ahead(0, memory.size());
    if (i % 2) memory.release(0, memory.size());
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
    std::memset(memory.data(), i, 4096);
    auto moved = std::move(memory);
    CHECK(moved.data()[4095] == static_cast<std::byte>(i));
  }
}
