// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/match_finder.h"

#include "codecs/dedup/twins.h"
#include "codecs/interval_set.h"

using namespace longhaul;
using namespace longhaul::dedup;

namespace {

constexpr std::size_t kMiB = 1 << 20;

// A few bytes exchanged, put in or taken out.
std::string edited(Random& random, std::string text, std::size_t edits) {
  for (; edits > 0; --edits) {
    const std::size_t at = random() % text.size();
    const std::size_t size = std::min<std::size_t>(1 + random() % 30, text.size() - at);
    const std::string fresh = random_bytes(random, 1 + random() % 30);
    switch (random() % 3) {
      case 0:
        text.replace(at, size, random_bytes(random, size));
        break;
      case 1:
        text.insert(at, fresh);
        break;
      default:
        text.erase(at, size);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("decoding restores the data however it is split into blocks") {
  std::vector<const Kernels*> all;
  for (const Vectors vectors : {Vectors::none, Vectors::avx2, Vectors::avx512})
    if (available(vectors)) all.push_back(&kernels(vectors));
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    // Two to nine steps: wraps around often.
    Twins twins((2 + random() % 8) * kRingStep, all[seed % all.size()]);
    twins.with_continuation = random() % 4 != 0;
    const std::size_t largest = random() % 3 == 0 ? 200 : random() % 2 ? 4096 : kRingStep;
    std::string text = random() % 2 ? random_text(random, 90'000) : random_bytes(random, 70'000);
    for (int pass = 0; pass < 8; ++pass) {
      twins.finder.set_thinner(random() % 4 == 0);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = 1 + random() % largest;
        twins.block(as_bytes(std::string_view(text).substr(at, size)));
        at += size;
      }
      text = edited(random, std::move(text), random() % 20);
      if (random() % 3 == 0) text.insert(random() % text.size(), std::string(random() % 9'000, 'z'));
    }
  }
}

TEST_CASE("data seen before costs next to nothing, at any offset and in blocks of any size") {
  Random random(1);
  const std::string text = random_bytes(random, 4 * kMiB);
  for (const std::size_t block : {std::size_t{100}, std::size_t{1000}, std::size_t{4096}, kRingStep}) {
    INFO("blocks of " << block);
    Twins twins(16 * kMiB);
    twins.send(text, 50'000);
    const std::size_t again = twins.send(text.substr(12'345), block);
    const std::size_t blocks = text.size() / block;
    CHECK(again < blocks * 10 + 20'000);
  }
}

TEST_CASE("repeats are also found with half the samples, however they were indexed") {
  Random random(2);
  const std::string text = random_text(random, 4 * kMiB);
  for (const bool thinner_before : {false, true})
    for (const bool thinner : {false, true}) {
      Twins twins(16 * kMiB);
      twins.finder.set_thinner(thinner_before);
      twins.send(text);
      twins.finder.set_thinner(thinner);
      twins.send(random_bytes(random, 1000));
      CHECK(twins.send(text.substr(12'345)) < 10'000);
    }
}

TEST_CASE("repeats of short blocks are found without the preceding bytes") {
  Random random(2);
  const std::string text = random_bytes(random, kMiB);
  Twins twins(16 * kMiB);
  twins.with_continuation = false;
  twins.send(text, 200);
  twins.copied = 0;
  twins.send(text, 200);
  // A block has three samples on average; 1 in 25 has none.
  CHECK(twins.copied > text.size() * 9 / 10);
}

TEST_CASE("an edit costs its own bytes and a token, and the second time only the token") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::string first = random_bytes(random, 4 * kMiB);
    Twins twins(32 * kMiB);
    twins.send(first);
    // 200 replacements of 20 bytes, and one byte in front.
    std::string second = "x" + first;
    for (int i = 0; i < 200; ++i)
      second.replace(random() % (second.size() - 20), 20, random_bytes(random, 20));
    const std::size_t edits = twins.send(second);
    // What stands before the first sample is not found: in what nothing is like there is one in 256 bytes.
    CHECK(edits < 200 * (20 + 4) + 64 * 10 + 1000);
    const std::size_t again = twins.send(second);
    CHECK(again < 200 * 12 + 64 * 20);
    // Once the newest history is met, it goes on there.
    const std::size_t third = twins.send(second);
    CHECK(third < 64 * 20 + 1000);
  }
}

TEST_CASE("samples of copied bytes point to the source of the copy, except at its edges") {
  constexpr std::size_t kKiB = 1024;
  Random random(4);
  const std::string first = random_bytes(random, 64 * kKiB);
  const std::string second =
      random_bytes(random, 16 * kKiB) + first.substr(16 * kKiB, 32 * kKiB) + random_bytes(random, 16 * kKiB);
  Twins twins(16 * kMiB);
  twins.with_continuation = false;
  twins.block(as_bytes(first));
  const std::uint64_t first_offset = twins.offset;
  twins.block(as_bytes(second));
  const std::uint64_t second_offset = twins.offset;
  REQUIRE(twins.copied == 32 * kKiB);
  // Where most of a piece of the second block is found.
  const auto source_of = [&](std::size_t at, std::size_t size) {
    twins.block(as_bytes(std::string_view(second).substr(at, size)));
    REQUIRE(twins.copies.size() == 1);
    REQUIRE(twins.copies[0].length > size * 3 / 4);
    return twins.copies[0].source - twins.copies[0].position;
  };
  CHECK(source_of(28 * kKiB, 8 * kKiB) == first_offset + 28 * kKiB);
  // The ends of the copy, with what is new next to them; and what is new alone, before it and behind it.
  CHECK(source_of(48 * kKiB - 400, 800) == second_offset + 48 * kKiB - 400);
  CHECK(source_of(16 * kKiB - 400, 800) == second_offset + 16 * kKiB - 400);
  CHECK(source_of(2 * kKiB, 8 * kKiB) == second_offset + 2 * kKiB);
  CHECK(source_of(54 * kKiB, 8 * kKiB) == second_offset + 54 * kKiB);
}

TEST_CASE("matches continue after insertions and deletions") {
  Random random(3);
  const std::string first = random_bytes(random, 4 * kMiB);
  Twins twins(32 * kMiB);
  twins.send(first);
  const std::string second = edited(random, first, 300);
  CHECK(twins.send(second) < 300 * 60);
}

TEST_CASE("history is found as long as the ring holds it") {
  Random random(4);
  Twins twins(4 * kMiB);
  const std::string marker = random_bytes(random, 64 << 10);
  std::size_t sent = 0;
  for (int round = 0; round < 20; ++round) {
    sent = twins.send(marker);
    if (round > 0) CHECK(sent < 4'000);
    // 3 MiB of others, and less than a MiB for the rest: the last one is still there.
    twins.send(random_bytes(random, 3 * kMiB));
  }
  twins.send(random_bytes(random, 4 * kMiB));
  CHECK(twins.send(marker) > marker.size());
}

TEST_CASE("content that repeats again and again is still found after its first copy is overwritten") {
  Random random(5);
  Twins twins(4 * kMiB);
  const std::string text = random_bytes(random, kMiB / 2);
  twins.send(text);
  for (int round = 0; round < 40; ++round) CHECK(twins.send(text) < 1'000);
}

TEST_CASE("only usable history is referenced") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Twins twins(8 * kRingStep);
    const std::string text = random_text(random, 40'000);
    IntervalSet usable;
    const auto ask = [&](std::uint64_t offset) {
      for (const Interval& range : usable.intervals())
        if (range.begin <= offset && offset < range.end) return range;
      return Interval{};
    };
    for (int step = 0; step < 300; ++step) {
      const std::size_t at = random() % text.size();
      const std::string_view piece = std::string_view(text).substr(at, 1 + random() % 3'000);
      twins.block(as_bytes(piece), ask);
      for (const Copy& copy : twins.copies) {
        REQUIRE(ask(copy.source).end >= copy.source + copy.length);
      }
      if (random() % 2) usable.add({twins.offset, twins.offset + piece.size()});
      if (random() % 50 == 0) usable.remove({0, twins.offset - random() % 50'000});
    }
    CHECK(twins.copied > 0);
  }
}

TEST_CASE("blocks that the peer has not confirmed do not hide those that it has") {
  Random random(6);
  const std::string text = random_bytes(random, kMiB);
  Twins twins(16 * kMiB);
  twins.with_continuation = false;
  const std::uint64_t begin = twins.here.head();
  twins.send(text);
  const std::uint64_t answered = twins.here.head();
  const auto nothing = [](std::uint64_t) { return Interval{}; };
  const auto held = [&](std::uint64_t) { return Interval{begin, answered}; };
  // Other flows carry the same bytes at once, none of which is answered yet.
  for (int flow = 0; flow < 5; ++flow)
    for (std::size_t at = 0; at < text.size(); at += 10'000)
      twins.block(as_bytes(std::string_view(text).substr(at, 10'000)), nothing);
  std::size_t sent = 0;
  for (std::size_t at = 0; at < text.size(); at += 10'000)
    sent += twins.block(as_bytes(std::string_view(text).substr(at, 10'000)), held);
  CHECK(sent < text.size() / 10);
}

TEST_CASE("history that arrived in another way is found") {
  Random random(7);
  Twins twins(16 * kMiB);
  const std::string text = random_bytes(random, 60'000);
  for (HistoryRing* ring : {&twins.here, &twins.there}) {
    const std::uint64_t offset = ring->place(text.size());
    std::memcpy(ring->reserve(offset, text.size()).data(), text.data(), text.size());
  }
  twins.finder.insert(twins.here, kRingStart, text.size());
  CHECK(twins.send(text) < 200);
}

TEST_CASE("a cleared finder finds nothing, and learns again") {
  Random random(8);
  Twins twins(16 * kMiB);
  const std::string text = random_bytes(random, 200'000);
  twins.send(text);
  twins.finder.clear();
  twins.continuation = 0;
  CHECK(twins.send(text) > text.size());
  CHECK(twins.send(text) < 1'000);
}
