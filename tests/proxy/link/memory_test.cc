// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/memory.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;

TEST_CASE("the floors of all streams plus the shared part equal the cap") {
  for (std::uint64_t cap : {std::uint64_t{1} << 20, std::uint64_t{64} << 20, std::uint64_t{4} << 30})
    for (std::uint32_t streams : {1u, 64u, 16'384u, 100'000u}) {
      CreditPool pool(cap, streams);
      CHECK(pool.cap_bytes() == cap);
      CHECK(pool.free_bytes() + pool.floor_bytes() * streams == cap);
      CHECK(pool.floor_bytes() <= CreditPool::kMaxFloor);
      CHECK(pool.free_bytes() >= cap / 2);
    }
}

TEST_CASE("a pool is full when it has as many streams as floors") {
  CreditPool pool(1 << 20, 2);
  pool.enter();
  CHECK_FALSE(pool.full());
  pool.enter();
  CHECK(pool.full());
  pool.leave();
  CHECK_FALSE(pool.full());
}

TEST_CASE("reservations of many sessions leave most of the pool to existing streams") {
  for (std::uint32_t sessions : {1u, 2u, 10u, 200u}) {
    CreditPool pool(256 << 20, 1024, sessions);
    std::uint64_t all = pool.free_bytes();
    for (std::uint32_t i = 0; i < sessions; ++i) pool.take(pool.open_share(0));
    CHECK(pool.free_bytes() >= all / 4 * 3);
    CHECK_FALSE(pool.under_pressure());
    CHECK(pool.open_share(0) > 0);
    // What is set aside already does not make less of it.
    const std::uint64_t ahead = pool.open_share(0);
    pool.take(ahead);
    CHECK(pool.open_share(ahead) == ahead);
  }
}

TEST_CASE("taking and returning leaves the pool unchanged, and the first share shrinks meanwhile") {
  CreditPool pool(64 << 20, 64);
  std::uint64_t all = pool.free_bytes(), last = pool.initial_share();
  CHECK(last == all / 8);
  CHECK_FALSE(pool.under_pressure());
  std::uint64_t taken = 0;
  for (int i = 0; i < 30; ++i) {
    std::uint64_t share = pool.initial_share();
    CHECK(share <= last);
    last = share;
    pool.take(share);
    taken += share;
  }
  CHECK(pool.under_pressure());
  // Nobody takes more than a sixteenth once a quarter is gone.
  CHECK(last <= pool.free_bytes() / 15 + 1);
  CHECK(pool.granted_bytes() == taken);
  pool.give(taken);
  CHECK(pool.free_bytes() == all);
}

TEST_CASE("the retained bytes of one large flow leave room for the others") {
  RetainedBudget budget(1 << 20);
  std::uint64_t large = 0;
  for (std::uint64_t more; (more = budget.allowance(large)) > 1000; large += more) budget.add(more);
  CHECK(large <= 1u << 20);
  // At the cap a stream that holds little may still add its few bytes; one that holds much may not.
  CHECK(budget.allowance(0) >= 4096);
  CHECK(budget.allowance(large) < 1000);
  budget.remove(large);
  CHECK(budget.used_bytes() == 0);
}

TEST_CASE("a pool is used up by unread bytes, not by granted credit") {
  for (std::uint64_t cap : {std::uint64_t{1} << 20, std::uint64_t{64} << 20, std::uint64_t{4} << 30}) {
    CreditPool pool(cap, 16);
    CHECK_FALSE(pool.used_up());
    std::uint64_t taken = 0;
    while (pool.free_bytes() > std::min<std::uint64_t>(cap / 1024, 1 << 19)) {
      const std::uint64_t share = pool.initial_share();
      pool.take(share);
      taken += share;
    }
    // A burst of flows that say nothing: it is asked back soon.
    CHECK_FALSE(pool.used_up());
    pool.arrived(taken);
    CHECK(pool.used_up());
    // A little room is none yet.
    const std::uint64_t little = std::min<std::uint64_t>(1 << 20, cap / 16);
    pool.taken(little);
    pool.give(little);
    CHECK(pool.used_up());
    pool.taken(2 * little);
    pool.give(2 * little);
    CHECK_FALSE(pool.used_up());
    pool.taken(taken - 3 * little);
    pool.give(taken - 3 * little);
    CHECK(pool.unread_bytes() == 0);
  }
}

TEST_CASE("the room for retained bytes is used up when another stream would get next to nothing") {
  for (std::uint64_t cap : {std::uint64_t{1} << 20, std::uint64_t{192} << 20}) {
    RetainedBudget budget(cap);
    budget.add(cap / 16 * 14);
    CHECK_FALSE(budget.used_up());
    budget.add(cap / 8);
    CHECK(budget.used_up());
    CHECK(budget.allowance(0) < 64 << 10);
    budget.remove(cap / 8);
    CHECK_FALSE(budget.used_up());
  }
}
