// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/block_samples.h"

#include "codecs/dedup/twins.h"

using namespace longhaul;
using namespace longhaul::dedup;

namespace {

constexpr std::size_t kSampledRing = 16 << 20, kSize = 60'000;

struct Sampled {
  HistoryRing ring = HistoryRing::make(kSampledRing).value();
  // So large that hardly any bucket is full.
  FingerprintIndex index = FingerprintIndex::make(1 << 30).value();
  Random random{9};
  std::string content = random_bytes(random, kSize);

  // Puts it into the ring; returns where.
  std::uint64_t put(const std::string& text) {
    const std::uint64_t offset = ring.place(text.size());
    std::memcpy(ring.reserve(offset, text.size()).data(), text.data(), text.size());
    return offset;
  }
  BlockSamples samples_at(std::uint64_t offset, std::size_t size = kSize) {
    return {kernels(), index, ring, offset, size, 0};
  }
};

}  // namespace

TEST_CASE("the samples of a block are found where the same content was remembered") {
  Sampled one;
  const std::uint64_t first = one.put(one.content);
  BlockSamples fresh = one.samples_at(first);
  fresh.sample_all();
  fresh.look_up();
  CHECK(fresh.size() > kSize / 100);
  for (std::size_t i = 0; i < fresh.size(); ++i) REQUIRE(fresh.candidate(i) == 0);
  fresh.remember_all();
  const std::uint64_t again = one.put(one.content);
  BlockSamples samples = one.samples_at(again);
  // In parts, of which none is sampled twice.
  for (std::int64_t to = 700; samples.sampled() < samples.end(); to += 700) {
    samples.sample(0, to);
    samples.look_up();
  }
  CHECK(samples.size() + 5 > fresh.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i > 0) REQUIRE(samples.position(i) > samples.position(i - 1));
    if (samples.position(i) >= 0)
      REQUIRE(samples.candidate(i) == first + static_cast<std::uint64_t>(samples.position(i)));
  }
}

TEST_CASE("samples deep inside a copy stay where they were, the others are remembered at their new place") {
  Sampled one;
  const std::uint64_t first = one.put(one.content);
  BlockSamples old = one.samples_at(first);
  old.sample_all();
  old.remember_all();
  const std::uint64_t second = one.put(one.content);
  // The copy ends before the block does.
  const std::vector<Copy> copies{{10'000, 40'000, first + 10'000}};
  const bool lasts = GENERATE(true, false);
  BlockSamples samples = one.samples_at(second);
  samples.sample_all();
  samples.look_up();
  samples.remember(copies, lasts ? first : second);
  BlockSamples seen = one.samples_at(one.put(one.content));
  seen.sample_all();
  seen.look_up();
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const std::int64_t at = seen.position(i);
    if (at < 0) continue;
    const bool deep = at >= 10'000 + BlockSamples::kEdge && at + 32 <= 50'000 - BlockSamples::kEdge;
    REQUIRE(seen.candidate(i) == (lasts && deep ? first : second) + static_cast<std::uint64_t>(at));
  }
}

TEST_CASE("an older place is found instead of one that waits, and both stay known") {
  Sampled one;
  const std::uint64_t first = one.put(one.content);
  BlockSamples old = one.samples_at(first);
  old.sample_all();
  old.remember_all();
  const std::uint64_t second = one.put(one.content);
  BlockSamples newer = one.samples_at(second);
  newer.sample_all();
  newer.remember_beside();
  const std::uint64_t third = one.put(one.content);
  BlockSamples samples = one.samples_at(third);
  samples.sample(0, kSize);
  samples.look_up();
  // Buckets that are full lose some entries.
  std::size_t tried = 0, found = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto at = static_cast<std::uint64_t>(samples.position(i));
    if (samples.candidate(i) != second + at) continue;
    ++tried;
    found += samples.older(i, samples.candidate(i)) == first + at;
    CHECK(samples.candidate(i) == BlockSamples::kWaiting);
    CHECK(samples.older(i, first + at) == 0);
  }
  CHECK(tried > samples.size() * 9 / 10);
  CHECK(found > tried * 9 / 10);
  // Beside the older ones, of which the first stays.
  samples.remember({}, 0);
  std::size_t newest = 0, oldest = 0;
  const std::uint64_t fourth = one.put(one.content);
  BlockSamples last = one.samples_at(fourth);
  last.sample(0, kSize);
  last.look_up();
  for (std::size_t i = 0; i < last.size(); ++i) {
    const auto at = static_cast<std::uint64_t>(last.position(i));
    newest += last.candidate(i) == third + at;
    oldest += last.older(i, last.candidate(i)) == first + at;
  }
  CHECK(newest > last.size() * 9 / 10);
  CHECK(oldest > last.size() / 2);
}
