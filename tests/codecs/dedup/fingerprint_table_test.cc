// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/fingerprint_table.h"

#include <set>

#include "codecs/dedup/twins.h"

using namespace longhaul::dedup;

namespace {

constexpr std::size_t kMostBytes = 256 << 10;
constexpr std::size_t kMostBuckets = kMostBytes / sizeof(Bucket);

}  // namespace

TEST_CASE("an entry stays in its fingerprint's bucket while the table grows to its full size") {
  auto table = FingerprintTable::make(kMostBytes).value();
  CHECK(table.bytes() == kMostBytes / FingerprintTable::kPlanes);
  CHECK(table.max_bytes() == kMostBytes);
  Random random(5);
  std::vector<std::pair<Fingerprint, std::uint64_t>> put;
  std::uint64_t offset = 1000;
  while (!table.full()) {
    REQUIRE(put.size() < 8 * kMostBuckets);
    const Fingerprint print = table.fingerprint(random());
    REQUIRE(print.bucket < table.shape().base);
    Bucket& into = table.bucket(print);
    for (unsigned way = 0; way < Bucket::kWays; ++way) {
      if (into.places[way] != 0) continue;
      into.write(way, print, offset);
      put.emplace_back(print, offset);
      table.grow_to_fit(1);
      break;
    }
    // Where the bucket was full.
    if (put.empty() || put.back().second != offset) table.grow_to_fit(1);
    offset += 77;
  }
  CHECK(table.bytes() == kMostBytes);
  CHECK(put.size() > 2 * kMostBuckets);
  for (const auto& [print, at] : put) {
    const Bucket& found = table.bucket(print);
    const Bucket::Four same = found.same(print);
    std::set<std::uint64_t> offsets;
    for (unsigned way = 0; way < Bucket::kWays; ++way)
      if (same[way]) offsets.insert(found.offset(way));
    REQUIRE(offsets.count(at) == 1);
  }
  table.clear();
  CHECK(table.bytes() == kMostBytes / FingerprintTable::kPlanes);
  CHECK(!table.full());
  for (const auto& [print, at] : put) REQUIRE(table.bucket(print).places[0] == 0);
}

TEST_CASE("a fingerprint's bucket is one of those that exist, at each size of the table") {
  auto table = FingerprintTable::make(kMostBytes).value();
  Random random(6);
  for (std::uint64_t buckets = 0; table.bytes() < kMostBytes; table.grow_to_fit(1)) {
    REQUIRE(table.shape().buckets >= buckets);
    buckets = table.shape().buckets;
    for (int i = 0; i < 10; ++i) REQUIRE(table.shape().number_of(table.fingerprint(random())) < buckets);
  }
}

TEST_CASE("an entry holds the lowest 34 bits of an offset") {
  Bucket bucket{};
  const Fingerprint print{.bucket = 0, .tag = (1u << 30) - 1};
  for (const std::uint64_t offset :
       {std::uint64_t{4}, std::uint64_t{1} << 33, (std::uint64_t{1} << 34) - 1}) {
    bucket.write(2, print, offset);
    CHECK(bucket.offset(2) == offset);
    bucket.write(2, print, offset + (std::uint64_t{5} << 34));
    CHECK(bucket.offset(2) == offset);
    CHECK(bucket.same(print)[2] != 0);
    CHECK(bucket.same({.bucket = 0, .tag = print.tag - 1})[2] == 0);
  }
}
