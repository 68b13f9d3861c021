// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/replacement.h"

#include <catch2/catch.hpp>

using namespace longhaul::dedup;

namespace {

constexpr std::uint64_t kSmallRing = 1 << 20, kNow = 64 << 20;
constexpr Fingerprint kNew{.bucket = 0, .tag = 128 * 9}, kNewPreferred{.bucket = 0, .tag = 128 * 9 + 64};

Fingerprint ordinary(std::uint32_t number) { return {.bucket = 0, .tag = 128 * (100 + number)}; }
Fingerprint preferred(std::uint32_t number) { return {.bucket = 0, .tag = 128 * (100 + number) + 64}; }

// Four ordinary entries that are still of use, the third one the oldest.
Bucket full() {
  Bucket bucket{};
  const std::uint64_t ages[] = {3000, 2000, 4000, 1000};
  for (unsigned way = 0; way < Bucket::kWays; ++way) bucket.write(way, ordinary(way), kNow - ages[way]);
  return bucket;
}

// 4: none is replaced.
unsigned replaced(const Bucket& bucket, Fingerprint print = kNew) {
  const auto claim = Replacement::highest_claim(bucket, print, kNow, Replacement::oldest(kSmallRing));
  return Replacement::leaves_out(claim, print) ? 4 : Replacement::way(claim);
}

}  // namespace

TEST_CASE("an entry of the same fingerprint is replaced first, then an empty one, a dead one, the oldest") {
  Bucket bucket = full();
  CHECK(replaced(bucket) == 2);
  bucket.write(3, preferred(3), kNow - kSmallRing - 4);
  CHECK(replaced(bucket) == 3);
  bucket.tags[1] = bucket.places[1] = 0;
  CHECK(replaced(bucket) == 1);
  bucket.write(0, kNew, kNow - 50);
  CHECK(replaced(bucket) == 0);
}

TEST_CASE("a preferred entry gives way to a preferred one only, and after all ordinary ones") {
  Bucket bucket = full();
  bucket.write(2, preferred(2), kNow - 4000);
  CHECK(replaced(bucket) == 0);
  CHECK(replaced(bucket, kNewPreferred) == 0);
  for (const unsigned way : {0u, 1u, 3u}) bucket.write(way, preferred(way), kNow - 500 * (way + 1));
  CHECK(replaced(bucket) == 4);
  CHECK(replaced(bucket, kNewPreferred) == 2);
}

TEST_CASE("beside an older entry of the same fingerprint, the oldest of the others is replaced") {
  Bucket bucket = full();
  CHECK(Replacement::way_beside(bucket, kNew, kNow) == 2);
  bucket.write(2, kNew, kNow - 4000);
  CHECK(Replacement::way_beside(bucket, kNew, kNow) == 0);
  // Of two the newer one goes, so that the one that is usable earlier stays.
  bucket.write(3, kNew, kNow - 1000);
  CHECK(Replacement::way_beside(bucket, kNew, kNow) == 3);
  bucket.write(3, ordinary(3), kNow - 1000);
  bucket.tags[1] = bucket.places[1] = 0;
  CHECK(Replacement::way_beside(bucket, kNew, kNow) == 1);
}
