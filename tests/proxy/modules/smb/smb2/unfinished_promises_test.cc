// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/unfinished_promises.h"

#include <catch2/catch.hpp>

namespace longhaul::smb::smb2::test {
namespace {

struct Promises {
  FileGroupRef group(std::u16string name) { return files.group_of({.tree = 1, .path = std::move(name)}); }
  OrderScope whole(const FileGroupRef& file) const { return {.kind = OrderScope::Kind::file, .file = file}; }
  OrderScope range(const FileGroupRef& file, std::uint64_t offset, std::uint64_t length) const {
    return {.kind = OrderScope::Kind::range, .file = file, .offset = offset, .length = length};
  }
  Files files;
  FileGroupRef a = group(u"A"), b = group(u"B");
  UnfinishedPromises table;
};

}  // namespace

TEST_CASE("a request waits for earlier promises of its file, not for later ones or other files") {
  Promises promises;
  promises.table.add(promises.a, 5);
  CHECK(promises.table.hold_up(promises.whole(promises.a), 6));
  CHECK_FALSE(promises.table.hold_up(promises.whole(promises.a), 5));
  CHECK_FALSE(promises.table.hold_up(promises.whole(promises.b), 6));
  CHECK(promises.table.hold_up({}, 6));  // everything
  CHECK_FALSE(promises.table.hold_up({}, 5));
  CHECK_FALSE(promises.table.hold_up({.kind = OrderScope::Kind::nothing}, 6));
  promises.table.remove(promises.a, 5, std::nullopt);
  CHECK_FALSE(promises.table.hold_up(promises.whole(promises.a), 6));
  CHECK_FALSE(promises.table.hold_up({}, 6));
}

TEST_CASE("a promised WRITE holds up the ranges that it overlaps, once its range is known") {
  Promises promises;
  promises.table.add(promises.a, 5);
  CHECK(promises.table.hold_up(promises.range(promises.a, 0, 1), 6));  // not yet
  promises.table.is_write(promises.a, 5, 100, 50);
  CHECK_FALSE(promises.table.hold_up(promises.range(promises.a, 0, 100), 6));
  CHECK(promises.table.hold_up(promises.range(promises.a, 0, 101), 6));
  CHECK(promises.table.hold_up(promises.range(promises.a, 149, 1), 6));
  CHECK_FALSE(promises.table.hold_up(promises.range(promises.a, 150, 10), 6));
  CHECK(promises.table.hold_up(promises.whole(promises.a), 6));
  promises.table.remove(promises.a, 5, 100);
  CHECK_FALSE(promises.table.hold_up(promises.range(promises.a, 100, 50), 6));
}

TEST_CASE("a WRITE that was promised later holds up nothing in its range, although another came before") {
  Promises promises;
  for (const std::uint64_t sequence : {5, 7}) promises.table.add(promises.a, sequence);
  promises.table.is_write(promises.a, 5, 0, 10);
  promises.table.is_write(promises.a, 7, 100, 10);
  CHECK_FALSE(promises.table.hold_up(promises.range(promises.a, 100, 10), 6));
  CHECK(promises.table.hold_up(promises.range(promises.a, 100, 10), 8));
}

TEST_CASE("of two WRITEs at one offset the one that is done is removed") {
  Promises promises;
  for (const std::uint64_t sequence : {5, 6}) promises.table.add(promises.a, sequence);
  promises.table.is_write(promises.a, 5, 100, 10);
  promises.table.is_write(promises.a, 6, 100, 1000);
  promises.table.remove(promises.a, 5, 100);
  CHECK(promises.table.hold_up(promises.range(promises.a, 500, 1), 7));
  CHECK_FALSE(promises.table.hold_up(promises.range(promises.a, 500, 1), 6));
}

TEST_CASE("overlaps with random WRITEs are those of an obvious search, or more") {
  Promises promises;
  std::uint64_t state = 1;
  const auto random = [&state](std::uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  struct Written {
    std::uint64_t offset, length;
  };
  std::vector<Written> all;
  for (std::uint64_t sequence = 1; sequence <= 40; ++sequence) {
    const Written write{random(10'000), 1 + random(300)};
    all.push_back(write);
    promises.table.add(promises.a, sequence);
    promises.table.is_write(promises.a, sequence, write.offset, static_cast<std::uint32_t>(write.length));
  }
  for (int n = 0; n < 2000; ++n) {
    const std::uint64_t offset = random(10'500), length = 1 + random(300);
    const bool overlaps = std::ranges::any_of(all, [&](const Written& write) {
      return write.offset < offset + length && offset < write.offset + write.length;
    });
    CHECK(promises.table.hold_up(promises.range(promises.a, offset, length), 100) == overlaps);
  }
}

TEST_CASE("a READ before thousands of WRITEs waits for them without looking at each") {
  Promises promises;
  for (std::uint64_t sequence = 1; sequence <= 5000; ++sequence) {
    promises.table.add(promises.a, sequence);
    promises.table.is_write(promises.a, sequence, 10 * sequence, 10);
  }
  // All of those that are looked at came later.
  CHECK(promises.table.hold_up(promises.range(promises.a, 10'000, ~std::uint64_t{0} - 10'000), 2));
}

TEST_CASE("the first promise of a file is known") {
  Promises promises;
  CHECK_FALSE(promises.table.first_of(*promises.a));
  promises.table.add(promises.a, 8);
  promises.table.add(promises.a, 5);
  CHECK(promises.table.first_of(*promises.a) == 5u);
  CHECK(promises.table.any_before(*promises.a, 6));
  CHECK_FALSE(promises.table.any_before(*promises.a, 5));
  promises.table.remove(promises.a, 5, std::nullopt);
  CHECK(promises.table.first_of(*promises.a) == 8u);
}

}  // namespace longhaul::smb::smb2::test
