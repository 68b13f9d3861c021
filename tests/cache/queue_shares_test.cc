// SPDX-License-Identifier: Apache-2.0
#include "cache/queue_shares.h"

#include <catch2/catch.hpp>

namespace longhaul::cache {
namespace {

reduction::SitePair link_of(int number) {
  reduction::SiteId one{}, other{};
  one[0] = std::byte(number), other[0] = std::byte{200};
  return {one, other};
}

// How much the link can add, a byte at a time.
std::uint64_t fill(QueueShares& shares, int link) {
  std::uint64_t bytes = 0;
  while (shares.fits(link_of(link), 1)) shares.add(link_of(link), 1), ++bytes;
  return bytes;
}

TEST_CASE("queue shares: a link alone gets three quarters, and each further one still finds room") {
  QueueShares shares(1'600);
  CHECK(fill(shares, 1) == 1'200);
  CHECK(fill(shares, 2) == 300);
  CHECK(fill(shares, 3) == 75);
  CHECK(fill(shares, 1) == 0);
  CHECK(shares.queued_bytes() == 1'575);
  // What the first has written makes room for all.
  shares.remove(link_of(1), 1'200);
  CHECK(shares.fits(link_of(2), 300));
  CHECK(fill(shares, 3) > 300);
}

TEST_CASE("queue shares: two that fill it together get the same, and nothing is too large to be refused") {
  QueueShares shares(1'400);
  while (shares.fits(link_of(1), 1) || shares.fits(link_of(2), 1))
    for (int link : {1, 2})
      if (shares.fits(link_of(link), 1)) shares.add(link_of(link), 1);
  CHECK(shares.queued_bytes() == 1'200);  // three sevenths each
  CHECK_FALSE(QueueShares(100).fits(link_of(1), 101));
  CHECK_FALSE(QueueShares(100).fits(link_of(1), 76));
  CHECK(QueueShares(100).fits(link_of(1), 75));
}

}  // namespace
}  // namespace longhaul::cache
