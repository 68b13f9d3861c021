// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/loaded_history.h"

#include <catch2/catch.hpp>

namespace longhaul::reduction {
namespace {

constexpr std::uint64_t kSmallRing = 1u << 20, kFront = 65'536;

// Blocks of one stream at the head, up to this offset.
void fill(SharedHistory& shared, std::uint64_t to) {
  StreamTrack track;
  while (shared.head() < to) {
    const std::uint64_t at = shared.head(), size = std::min<std::uint64_t>(16'384, to - at);
    shared.add(1, track, at, size);
    shared.on_held({at, at + size});
  }
}

TEST_CASE("a loaded part of a segment is in memory until the history passes it") {
  SharedHistory shared(kSmallRing, kFront);
  LoadedHistory loaded;
  fill(shared, kFront + 50'000);
  loaded.add({.segment = 9, .offset = 100, .length = 1'000, .ring_offset = kFront}, 1);
  CHECK_FALSE(loaded.holds(9, 99, shared));
  CHECK(loaded.holds(9, 100, shared));
  CHECK(loaded.holds(9, 1'099, shared));
  CHECK_FALSE(loaded.holds(9, 1'100, shared));
  CHECK_FALSE(loaded.holds(8, 100, shared));
  CHECK_FALSE(loaded.holds(10, 100, shared));
  fill(shared, kFront + 2 * kSmallRing);
  CHECK_FALSE(loaded.holds(9, 100, shared));
}

TEST_CASE("of a part that was loaded twice the later place counts") {
  SharedHistory shared(kSmallRing, kFront);
  LoadedHistory loaded;
  fill(shared, kFront + 50'000);
  const Load first{.segment = 9, .offset = 0, .length = 1'000, .ring_offset = kFront};
  loaded.add(first, 1);
  fill(shared, kFront + kSmallRing / 2);
  Load second = first;
  second.ring_offset = kFront + kSmallRing / 2 - 1'000;
  loaded.add(second, 2);
  // The first is out of reach, and forgetting it leaves the second.
  fill(shared, kFront + kSmallRing);
  loaded.forget_out_of_reach(shared);
  CHECK(loaded.holds(9, 0, shared));
  CHECK_FALSE(loaded.give_up(first));
  CHECK(loaded.give_up(second) == 2u);
  fill(shared, kFront + 2 * kSmallRing);
  loaded.forget_out_of_reach(shared);
  CHECK_FALSE(loaded.give_up(second));
}

TEST_CASE("a load is given up once, and only if it was announced exactly so") {
  LoadedHistory loaded;
  const Load load{.segment = 9, .offset = 100, .length = 1'000, .ring_offset = kFront};
  loaded.add(load, 5);
  auto other = load;
  other.segment = 8;
  CHECK_FALSE(loaded.give_up(other));
  other = load;
  other.length = 999;
  CHECK_FALSE(loaded.give_up(other));
  other = load;
  other.ring_offset += 1;
  CHECK_FALSE(loaded.give_up(other));
  // The twin does not say where in the segment it was.
  other = load;
  other.offset = 0;
  CHECK(loaded.give_up(other) == 5u);
  CHECK_FALSE(loaded.give_up(load));
  loaded.add(load, 6);
  loaded.clear();
  CHECK_FALSE(loaded.give_up(load));
}

}  // namespace
}  // namespace longhaul::reduction
