// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/listed_names.h"

#include <catch2/catch.hpp>

using longhaul::smb::smb2::ListedNames;

TEST_CASE("listed names are kept in their order, and shortened from their end") {
  ListedNames names;
  ListedNames::List one, two;
  for (const auto* name : {"b", "a", "c"}) CHECK(names.add(one, name));
  CHECK(names.add(two, "d"));
  const std::size_t all = names.bytes();
  names.shorten(one, 2);
  CHECK(one == ListedNames::List{"b", "a"});
  CHECK(names.bytes() < all);
  names.shorten(one, 5);  // it has fewer
  CHECK(one.size() == 2);
  names.forget(one);
  CHECK(one.empty());
  names.forget(two);
  CHECK(names.bytes() == 0);
}

TEST_CASE("the names of one listing are limited in number") {
  ListedNames names;
  ListedNames::List one, two;
  while (one.size() < ListedNames::kMostNames) REQUIRE(names.add(one, "n"));
  const std::size_t before = names.bytes();
  CHECK_FALSE(names.add(one, "n"));
  CHECK(one.size() == ListedNames::kMostNames);
  CHECK(names.bytes() == before);
  CHECK(names.add(two, "n"));
}

TEST_CASE("the names of all listings share one limit of memory") {
  ListedNames names;
  ListedNames::List one, two;
  const std::string is_long(1 << 20, 'x');
  while (names.add(one, is_long)) REQUIRE(one.size() < 100);
  CHECK(names.bytes() <= ListedNames::kMostBytes);
  CHECK_FALSE(names.add(two, is_long));
  CHECK(two.empty());
  names.shorten(one, one.size() - 1);
  CHECK(names.add(two, is_long));
}
