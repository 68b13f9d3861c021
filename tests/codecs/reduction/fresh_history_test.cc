// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/fresh_history.h"

#include <catch2/catch.hpp>

#include "codecs/reduction/segments.h"

namespace longhaul::reduction {
namespace {

constexpr std::uint64_t kLargeRing = 64u << 20, kFreshStart = 65'536;
using Rest = FreshHistory::Rest;

// A history whose blocks are all new.
struct Sending {
  SharedHistory shared{kLargeRing, kFreshStart};
  StreamTrack track;
  FreshHistory fresh;

  void send(std::uint64_t bytes) {
    for (; bytes > 0; bytes -= std::min<std::uint64_t>(bytes, 65'536)) {
      const std::uint64_t at = shared.head(), size = std::min<std::uint64_t>(bytes, 65'536);
      shared.add(1, track, at, size);
      fresh.add({at, at + size});
    }
  }
  void answer(Interval range) {
    for (std::uint64_t at = range.begin; at < range.end; at += 65'536)
      shared.on_held({at, std::min(at + 65'536, range.end)});
  }
  std::vector<Interval> take(Rest rest) { return fresh.take(shared, kLargeRing, rest); }
};

TEST_CASE("only bytes that the twin holds become segments, and each once") {
  Sending one;
  one.send(3 * kSealBytes);
  CHECK(one.take(Rest::sealed).empty());
  one.answer({kFreshStart, kFreshStart + kSealBytes + 65'536});
  const std::vector<Interval> first{{kFreshStart, kFreshStart + kSealBytes}};
  CHECK(one.take(Rest::stays) == first);
  one.answer({kFreshStart + kSealBytes + 65'536, one.shared.head()});
  const std::vector<Interval> others{{kFreshStart + kSealBytes, kFreshStart + 2 * kSealBytes},
                                     {kFreshStart + 2 * kSealBytes, kFreshStart + 3 * kSealBytes}};
  CHECK(one.take(Rest::stays) == others);
  CHECK(one.take(Rest::sealed).empty());
}

TEST_CASE("a rest becomes a segment on request, unless it is too short to be worth one") {
  Sending one;
  one.send(65'536);
  one.answer({kFreshStart, one.shared.head()});
  CHECK(one.take(Rest::stays).empty());
  CHECK(one.take(Rest::sealed) == std::vector<Interval>{{kFreshStart, kFreshStart + 65'536}});
  one.send(kMinSealedBytes - 1);
  one.answer({kFreshStart + 65'536, one.shared.head()});
  CHECK(one.take(Rest::sealed).empty());
}

TEST_CASE("without new answers the history is not searched again") {
  Sending one;
  one.send(2 * kSealBytes);
  one.answer({kFreshStart, kFreshStart + kSealBytes - 65'536});
  CHECK(one.take(Rest::stays).empty());
  // Now all is there for one, but too little was answered since.
  one.answer({kFreshStart + kSealBytes - 65'536, kFreshStart + kSealBytes});
  CHECK(one.take(Rest::stays).empty());
  CHECK(one.take(Rest::sealed).size() == 1);
}

TEST_CASE("no segment crosses the end of the ring") {
  Sending one;
  const std::uint64_t before = kLargeRing - kFreshStart - 100'000;
  one.send(before);
  one.answer({kFreshStart, one.shared.head()});
  one.take(Rest::sealed);
  one.send(300'000);
  one.answer({kFreshStart + before, one.shared.head()});
  const std::vector<Interval> parts{{kLargeRing - 100'000, kLargeRing}, {kLargeRing, kLargeRing + 200'000}};
  CHECK(one.take(Rest::sealed) == parts);
}

TEST_CASE("bytes that will soon be overwritten are sealed in smaller parts, or given up") {
  Sending one;
  one.send(200'000);
  one.answer({kFreshStart, kFreshStart + 65'536});
  one.send(kLargeRing / 2 + kSealBytes);
  one.answer({kFreshStart + 200'000, one.shared.head()});
  auto taken = one.take(Rest::stays);
  REQUIRE(taken.size() > 2);
  CHECK(taken.front() == Interval{kFreshStart, kFreshStart + 65'536});
  // The unanswered part between them is not fresh any more.
  one.answer({kFreshStart + 65'536, kFreshStart + 200'000});
  one.send(kSealBytes);
  one.answer({one.shared.head() - kSealBytes, one.shared.head()});
  for (Interval piece : one.take(Rest::sealed)) CHECK(piece.begin >= kFreshStart + 200'000);
}

TEST_CASE("after a clearing nothing is fresh") {
  Sending one;
  one.send(kSealBytes);
  one.answer({kFreshStart, one.shared.head()});
  one.fresh.clear();
  CHECK(one.take(Rest::sealed).empty());
}

}  // namespace
}  // namespace longhaul::reduction
