// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/sealing_queue.h"

#include <catch2/catch.hpp>

#include "tests/codecs/reduction/twins.h"

namespace longhaul::reduction {
namespace {

using Of = SealingSegment::Of;
constexpr std::uint32_t kPart = 100'000;

// Two histories with the same bytes.
struct Histories {
  std::string content = Traffic(17).noise(20 * kPart);
  dedup::HistoryRing own = made(), twin = made();
  SealingQueue queue;

  dedup::HistoryRing made() const {
    auto ring = dedup::HistoryRing::make(16 << 20);
    auto room = ring->reserve(ring->head(), content.size());
    std::memcpy(room.data(), content.data(), content.size());
    return std::move(*ring);
  }
  SegmentName part(std::uint32_t number) const {
    return {.first = kRingStart + number * kPart, .length = kPart};
  }
  std::string_view text(std::uint32_t number) const {
    return std::string_view(content).substr(number * kPart, kPart);
  }
  std::optional<SealingQueue::Done> go_on(std::size_t& bytes) { return queue.go_on({&own, &twin}, bytes); }
};

TEST_CASE("segments are made in order, with no more work at once than allowed") {
  Histories both;
  both.queue.add(Of::own, both.part(3), 16 << 20);
  both.queue.add(Of::own, both.part(1), 16 << 20);
  std::size_t calls = 0;
  std::vector<std::string> made;
  while (!both.queue.empty()) {
    std::size_t bytes = 30'000;
    while (auto done = both.go_on(bytes)) {
      CHECK(done->of == Of::own);
      made.push_back(std::string(as_text(done->sealed.bytes.bytes())));
    }
    REQUIRE(++calls < 100);
  }
  CHECK(calls == 7);
  REQUIRE(made.size() == 2);
  CHECK(made[0] == both.text(3));
  CHECK(made[1] == both.text(1));
}

TEST_CASE(
    "a segment that does not match the twin's digest, or whose history is gone, delays none behind it") {
  Histories both;
  both.queue.add(Of::twin, both.part(2), 16 << 20);  // its digest is not that of the bytes
  both.queue.add(Of::own, {.first = kRingStart + (15u << 20), .length = kPart}, 16 << 20);
  both.queue.add(Of::own, both.part(4), 16 << 20);
  std::size_t bytes = 1 << 20;
  auto done = both.go_on(bytes);
  REQUIRE(done);
  CHECK(as_text(done->sealed.bytes.bytes()) == both.text(4));
  CHECK(bytes == (1u << 20) - 2 * kPart);
  CHECK_FALSE(both.go_on(bytes));
  CHECK(both.queue.empty());
}

TEST_CASE("blocks that pass earn work, a bounded amount, and nothing while no segment waits") {
  Histories both;
  both.queue.earn(1 << 20);
  CHECK(both.queue.spend() == 0);
  both.queue.add(Of::own, both.part(0), 16 << 20);
  CHECK(both.queue.spend() == 0);
  both.queue.earn(1'000);
  CHECK(both.queue.spend() == 3'000);
  CHECK(both.queue.spend() == 0);
  both.queue.earn(100u << 20);
  std::size_t turns = 0;
  for (std::size_t bytes; (bytes = both.queue.spend()) > 0; ++turns) CHECK(bytes <= SealingQueue::kPerTurn);
  CHECK(turns == 4);
}

TEST_CASE("no more waits than a history can have, and the parts of one side can be forgotten") {
  Histories both;
  constexpr std::uint64_t kTinyRing = 10 * kPart;
  for (int i = 0; i < 100; ++i) both.queue.add(i % 2 ? Of::own : Of::twin, both.part(5), kTinyRing);
  both.queue.forget(Of::twin);
  std::size_t made = 0;
  for (std::size_t bytes = 100u << 20; both.go_on(bytes);) ++made;
  CHECK(made == 10);  // 21 were taken, every other one of the twin
  // What was forgotten and what is done count no more.
  for (int i = 0; i < 100; ++i) both.queue.add(Of::own, both.part(5), kTinyRing);
  made = 0;
  for (std::size_t bytes = 100u << 20; both.go_on(bytes);) ++made;
  CHECK(made == 21);
  for (int i = 0; i < 10'000; ++i) both.queue.add(Of::own, both.part(6), 1ull << 40);
  made = 0;
  for (std::size_t bytes = 1u << 30; both.go_on(bytes);) ++made;
  CHECK(made == 4'096);
}

}  // namespace
}  // namespace longhaul::reduction
