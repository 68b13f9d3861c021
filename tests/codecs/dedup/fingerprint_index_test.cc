// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/fingerprint_index.h"

#include "codecs/dedup/twins.h"

using namespace longhaul;
using namespace longhaul::dedup;

namespace {

constexpr std::uint64_t kRing = 64 << 20;

Fingerprint print_of(const FingerprintIndex& index, std::uint64_t number) {
  std::byte key[kKeyBytes] = {};
  std::memcpy(key, &number, sizeof number);
  return index.fingerprint(key);
}

}  // namespace

TEST_CASE("recent entries are found while the table grows and afterwards") {
  auto index = FingerprintIndex::make(kRing).value();
  CHECK(index.max_bytes() == kRing / 16);
  CHECK(index.bytes() == kRing / 16 / 64);
  // Half as many as there are places in the end.
  const std::uint64_t count = kRing / 16 / 8 / 2;
  for (std::uint64_t i = 1; i <= count; ++i) {
    index.insert(print_of(index, i), i * 100);
    const std::uint64_t other = 1 + i / 2;
    if (i % 64 == 0 && i < count / 8) {
      const std::uint64_t found = index.newest(print_of(index, other), i * 100 + 1);
      if (found != 0) REQUIRE(found == other * 100);
    }
  }
  CHECK(index.bytes() == index.max_bytes());
  std::uint64_t found = 0;
  for (std::uint64_t i = 1; i <= count; ++i)
    found += index.newest(print_of(index, i), (count + 1) * 100) == i * 100;
  // Some buckets are full.
  CHECK(found > count * 85 / 100);
  index.clear();
  CHECK(index.bytes() == kRing / 16 / 64);
  CHECK(index.newest(print_of(index, count), (count + 1) * 100) == 0);
}

TEST_CASE("a full table keeps samples of all of the history") {
  auto index = FingerprintIndex::make(kRing).value();
  // A sample every 64 bytes, four times around: twice as many in each lap as there are places.
  const std::uint64_t laps = 4, count = laps * kRing / 64;
  for (std::uint64_t i = 1; i <= count; ++i) index.insert(print_of(index, i), i * 64);
  std::uint64_t latest = 0, oldest = 0, gone = 0;
  const std::uint64_t part = kRing / 64 / 10, now = count * 64 + 1;
  for (std::uint64_t i = 0; i < part; ++i) {
    latest += index.newest(print_of(index, count - i), now) != 0;
    oldest += index.newest(print_of(index, count - kRing / 64 + 1 + i), now) != 0;
    gone += index.newest(print_of(index, count - kRing / 64 - part + i), now) != 0;
  }
  CHECK(latest > part * 6 / 10);
  CHECK(oldest > part * 2 / 10);
  CHECK(gone == 0);
}

TEST_CASE("a lookup finds the newest of several equal fingerprints, and an older one if it was kept") {
  auto index = FingerprintIndex::make(kRing).value();
  const Fingerprint print = print_of(index, 7);
  index.insert(print, 1000);
  CHECK(index.newest(print, 1000) == 0);
  CHECK(index.newest(print, 1001) == 1000);
  index.insert(print, 2000);
  CHECK(index.newest(print, 5000) == 2000);
  CHECK(index.newest(print, 2000) == 0);
  index.insert_beside(print, 3000);
  CHECK(index.newest(print, 5000) == 3000);
  CHECK(index.newest(print, 3000) == 2000);
  // Of two that wait the one that waits longer stays.
  index.insert_beside(print, 4000);
  CHECK(index.newest(print, 5000) == 4000);
  CHECK(index.newest(print, 4000) == 2000);
  CHECK(index.newest(print, 2000 + kRing) != 2000);
  CHECK(index.newest(print, 4000 + kRing) == 4000);
  CHECK(index.newest(print, 4001 + kRing) == 0);
}

TEST_CASE("all implementations of the index give the same answers") {
  constexpr std::uint64_t kSmall = 2 << 20;
  auto plain = FingerprintIndex::make(kSmall, Vectors::none).value();
  for (const Vectors vectors : {Vectors::avx2, Vectors::avx512}) {
    if (!available(vectors)) continue;
    INFO(kernels(vectors).name);
    plain.clear();
    auto fast = FingerprintIndex::make(kSmall, vectors).value();
    Random random(1);
    const std::string text = random_text(random, kSmall / 2) + random_bytes(random, kSmall);
    std::uint64_t offset = 1 << 20, found = 0, left_out = 0;
    // Five times around, so that the table grows, is full, and forgets.
    for (int round = 0; round < 1500; ++round) {
      const std::size_t size = random() % 16'000, at = random() % (text.size() - size - kOverread);
      const auto halvings = static_cast<unsigned>(random() % 3);
      const std::byte* data = as_bytes(text).data() + at;
      std::vector<std::uint32_t> positions(sample_room(size));
      positions.resize(kernels().sample(data, size, positions.data()));
      std::vector<std::uint32_t> others = positions;
      std::vector<Fingerprint> prints(positions.size()), other_prints(positions.size());
      const std::size_t count = plain.fingerprints(data, positions, prints.data(), halvings);
      REQUIRE(fast.fingerprints(data, others, other_prints.data(), halvings) == count);
      left_out += positions.size() - count;
      positions.resize(count), others.resize(count), prints.resize(count), other_prints.resize(count);
      REQUIRE(positions == others);
      for (std::size_t i = 0; i < count; ++i) {
        REQUIRE(prints[i].bucket == other_prints[i].bucket);
        REQUIRE(prints[i].tag == other_prints[i].tag);
        REQUIRE(plain.fingerprint(data + positions[i]).tag == prints[i].tag);
      }
      std::vector<std::uint64_t> answers(count, 7), other_answers(count, 8);
      plain.newest(prints, offset, answers.data());
      fast.newest(prints, offset, other_answers.data());
      REQUIRE(answers == other_answers);
      for (const std::uint64_t answer : answers) found += answer != 0;
      plain.insert(prints, positions, offset);
      fast.insert(prints, positions, offset);
      REQUIRE(plain.bytes() == fast.bytes());
      offset += size;
    }
    CHECK(plain.bytes() == plain.max_bytes());
    CHECK(found > 10'000);
    CHECK(left_out > 10'000);
  }
}

TEST_CASE("an entry is found until it is more than a ring behind, also where offsets wrap") {
  constexpr std::uint64_t kLargest = FingerprintIndex::kMaxRingBytes;
  for (const Vectors vectors : {Vectors::none, Vectors::avx2, Vectors::avx512}) {
    if (!available(vectors)) continue;
    INFO(kernels(vectors).name);
    auto index = FingerprintIndex::make(kLargest, vectors).value();
    const auto newest = [&](Fingerprint print, std::uint64_t before) {
      const std::vector<Fingerprint> prints(11, print);  // more than are looked at together
      std::vector<std::uint64_t> found(prints.size(), 7);
      index.newest(prints, before, found.data());
      REQUIRE(found == std::vector<std::uint64_t>(prints.size(), index.newest(print, before)));
      return found[0];
    };
    // Entries hold 34 bits of these.
    for (const std::uint64_t offset :
         {std::uint64_t{70'000}, (std::uint64_t{1} << 34) - 4, std::uint64_t{1} << 34,
          (std::uint64_t{1} << 34) + 12'345, (std::uint64_t{5} << 34) - 1, std::uint64_t{1} << 60}) {
      INFO("offset " << offset);
      const auto number = static_cast<std::uint32_t>(offset % 977);
      const Fingerprint print{number, 64 + 128 * number};
      index.insert(print, offset);
      CHECK(newest(print, offset) == 0);
      CHECK(newest(print, offset + 1) == offset);
      CHECK(newest(print, offset + kLargest) == offset);
      CHECK(newest(print, offset + kLargest + 1) == 0);
    }
    // What would be farther back than there is anything.
    const Fingerprint print{3, 64};
    index.insert(print, kLargest + 2'000'000);
    CHECK(newest(print, 1'000'000) == 0);
    CHECK(newest(print, 0) == 0);
  }
}

TEST_CASE("an ordinary entry replaces a preferred one only if that is more than a ring behind") {
  constexpr std::uint64_t kFirst = 1 << 20;
  for (const Vectors vectors : {Vectors::none, Vectors::avx2, Vectors::avx512}) {
    if (!available(vectors)) continue;
    INFO(kernels(vectors).name);
    auto index = FingerprintIndex::make(kRing, vectors).value();
    const auto preferred = [](std::uint32_t number) { return Fingerprint{9, 64 + 128 * number}; };
    const Fingerprint ordinary{9, 128 * 77};
    for (std::uint32_t i = 0; i < 4; ++i) index.insert(preferred(i), kFirst + 100 * i);
    index.insert(ordinary, kFirst + kRing);
    CHECK(index.newest(ordinary, kFirst + kRing + 1) == 0);
    index.insert(ordinary, kFirst + kRing + 4);
    CHECK(index.newest(ordinary, kFirst + kRing + 5) == kFirst + kRing + 4);
    CHECK(index.newest(preferred(1), kFirst + kRing + 5) == kFirst + 100);
  }
}
