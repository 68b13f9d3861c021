// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/open_credit.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;

TEST_CASE("a peer uses no more for its new streams than was set aside, and the rest returns to the pool") {
  CreditPool pool(64 << 20, 16);
  {
    OpenCredit credit(pool);
    CHECK(credit.grant(OpenCredit::Traffic::none));
    CHECK_FALSE(credit.grant(OpenCredit::Traffic::none));
    const std::uint64_t ahead = credit.ahead();
    CHECK(ahead > 0);
    CHECK(pool.granted_bytes() == ahead);
    REQUIRE(credit.take(1000));
    CHECK(credit.ahead() == ahead - 1000);
    CHECK(credit.take(ahead).error() == LinkError::credit_exceeded);
    CHECK(pool.granted_bytes() == ahead - 1000);
    // A little is made up for while all is quiet only.
    CHECK_FALSE(credit.grant(OpenCredit::Traffic::some));
    CHECK(credit.grant(OpenCredit::Traffic::none));
    CHECK(credit.granted() == ahead + 1000);
  }
  CHECK(pool.granted_bytes() == 0);
}

TEST_CASE(
    "a stream that comes alone gets half of what the peer has set aside, others a quarter of the rest") {
  CreditPool pool(64 << 20, 16);
  OpenCredit credit(pool);
  credit.on_frame({.limit = 1000, .floor = 10});
  auto first = credit.take_first(0);
  CHECK(first.credit == 510);
  CHECK(first.from_open_credit == 500);
  CHECK(credit.take_first(0).from_open_credit == 125);
  // A window bounds it, and the floor is outside of what is set aside.
  CHECK(credit.take_first(5).credit == 5);
  CHECK(credit.take_first(5).from_open_credit == 0);
  CHECK(credit.take_first(11).from_open_credit == 1);
  // An older frame changes nothing.
  credit.on_frame({.limit = 900, .floor = 10});
  CHECK(credit.take_first(0).from_open_credit == (1000 - 626) / 4);
}
