// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/size_limit.h"

#include <catch2/catch.hpp>

namespace longhaul::promises {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30, kTiB = kGiB << 10;

// A WRITE of this length that follows what the server has confirmed.
bool goes_on(std::uint64_t confirmed, std::uint32_t length = 1 << 20) {
  return ends_within_limits(confirmed, length, confirmed);
}

}  // namespace

TEST_CASE("nothing is promised across a power of two from 2 GiB on") {
  CHECK(goes_on(kGiB));
  CHECK_FALSE(goes_on(2 * kGiB - (1 << 20)));
  CHECK(goes_on(2 * kGiB));
  CHECK_FALSE(goes_on(16 * kTiB - (1 << 20)));
  CHECK_FALSE(ends_within_limits(~std::uint64_t{0}, 1, 0));
}

TEST_CASE("nothing is promised across the limits of ext2 and ext3, with blocks of 1, 2 and 4 KiB") {
  const std::uint64_t limit = GENERATE(17'247'252'480u, 275415851008u, 2'194'719'883'264u, 4402345721856u);
  INFO(limit);
  CHECK(goes_on(limit - (2 << 20)));
  CHECK_FALSE(goes_on(limit - (1 << 19)));
  CHECK(goes_on(limit + (1 << 20)));
}

}  // namespace longhaul::promises
