// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_limit.h"

#include <catch2/catch.hpp>

using namespace longhaul::cache;

namespace {

constexpr std::uint64_t kCap = 1u << 30;

}  // namespace

TEST_CASE("segments may take the limit less twice what the rest of the directory takes, and a margin") {
  DiskLimit limit(kCap);
  limit.set_overhead(10u << 20);
  const std::uint64_t room = kCap - (20u << 20) - DiskLimit::kGrowth;
  CHECK(!limit.exceeded(room, 1));
  CHECK(limit.exceeded(room + 1, 1) == Inventory::Short::bytes);
  CHECK(limit.fits_alone(room));
  CHECK(!limit.fits_alone(room + 1));
  limit.set_overhead(0);
  CHECK(!limit.exceeded(room + 1, 1));
  CHECK(limit.overhead_bytes() == 0);
}

TEST_CASE("the number of segments is limited, too; if both are exceeded, bytes are what is short") {
  const DiskLimit limit(kCap);
  const std::uint64_t most = kCap / DiskLimit::kBytesPerSegment;
  CHECK(!limit.exceeded(0, most));
  CHECK(limit.exceeded(0, most + 1) == Inventory::Short::segments);
  CHECK(limit.exceeded(kCap, most + 1) == Inventory::Short::bytes);
}

TEST_CASE("a limit that is too small counts as the smallest, also if everything is overhead") {
  DiskLimit limit(0);
  CHECK(limit.cap_bytes() == kMinCapBytes);
  CHECK(limit.fits_alone(kMinCapBytes / 2));
  limit.set_overhead(kMinCapBytes);
  CHECK(!limit.fits_alone(1));
  CHECK(limit.exceeded(0, 0) == Inventory::Short::bytes);
}
