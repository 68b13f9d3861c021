// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/sealing.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/codecs/reduction/twins.h"

namespace longhaul::reduction {
namespace {

constexpr std::size_t kLength = 1'000'003;

dedup::HistoryRing ring_with(const std::string& content, std::uint64_t& first) {
  auto ring = dedup::HistoryRing::make(16 << 20);
  REQUIRE(ring.has_value());
  first = ring->head();
  auto room = ring->reserve(first, content.size());
  std::memcpy(room.data(), content.data(), content.size());
  return std::move(*ring);
}

bool same(const std::vector<Hook>& a, const std::vector<Hook>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Hook& x, const Hook& y) {
    return x.fingerprint == y.fingerprint && x.offset == y.offset;
  });
}

TEST_CASE("a segment sealed in pieces equals the same segment sealed in one piece") {
  Traffic traffic(3);
  const std::string content = traffic.noise(kLength);
  std::uint64_t first = 0;
  const dedup::HistoryRing ring = ring_with(content, first);
  const Slice whole = Slice::copy_of(as_bytes(content));
  std::vector<Hook> hooks;
  find_hooks(ring.read(first, kLength), hooks);
  REQUIRE(hooks.size() > 100);

  std::mt19937 random(11);
  for (std::size_t most :
       {std::size_t{1'000}, std::size_t{65'536}, std::size_t{70'001}, kLength, 2 * kLength}) {
    SlicePool pool(most % 2 ? kLength + dedup::kOverread : 4 * kLength, 1);  // as long, and much longer
    for (auto of : {SealingSegment::Of::own, SealingSegment::Of::twin}) {
      SegmentName name{.first = first, .length = kLength};
      if (of == SealingSegment::Of::twin) name.digest = segment_digest({&whole, 1});
      SealingSegment segment(of, name);
      while (segment.left() > 0) REQUIRE(segment.go_on(&ring, 1 + random() % most, pool));
      auto sealed = segment.take();
      REQUIRE(sealed);
      CHECK(as_text(sealed->bytes.bytes()) == content);
      CHECK(same(sealed->hooks, hooks));
      CHECK(sealed->name.digest == segment_digest({&whole, 1}));
    }
  }
}

TEST_CASE("bytes that do not match the peer's digest make no segment") {
  Traffic traffic(5);
  std::uint64_t first = 0;
  const dedup::HistoryRing ring = ring_with(traffic.noise(kLength), first);
  SlicePool pool(kLength, 1);
  SealingSegment segment(SealingSegment::Of::twin, {.first = first, .length = kLength});
  while (segment.left() > 0) REQUIRE(segment.go_on(&ring, 300'000, pool));
  CHECK_FALSE(segment.take());
}

TEST_CASE("a segment whose history is overwritten meanwhile is abandoned") {
  Traffic traffic(4);
  std::uint64_t first = 0;
  dedup::HistoryRing ring = ring_with(traffic.noise(kLength), first);
  SlicePool pool(kLength, 1);
  SealingSegment segment(SealingSegment::Of::own, {.first = first, .length = kLength});
  REQUIRE(segment.go_on(&ring, 300'000, pool));
  ring.forget_before(first + 1);
  CHECK_FALSE(segment.go_on(&ring, 300'000, pool));
  CHECK_FALSE(segment.go_on(nullptr, 300'000, pool));
}

}  // namespace
}  // namespace longhaul::reduction
