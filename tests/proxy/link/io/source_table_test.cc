// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/source_table.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using boost::asio::ip::make_address;

TEST_CASE("a source is an IPv4 address or an IPv6 /64") {
  const auto key = [](const char* text) { return source_key(make_address(text)); };
  CHECK(key("10.0.0.1") == key("::ffff:10.0.0.1"));
  CHECK(key("10.0.0.1") != key("10.0.0.2"));
  CHECK(key("2001:db8:1:2::1") == key("2001:db8:1:2:ffff:ffff:ffff:ffff"));
  CHECK(key("2001:db8:1:2::1") != key("2001:db8:1:3::1"));
  // No host of IPv6 can stand for one of IPv4, whatever its address is.
  CHECK(key("0.0.0.0") != key("::"));
  CHECK(key("0.0.0.1") != key("::1"));
  CHECK(key("10.0.0.1") != key("0:0:a00:1::"));
}

TEST_CASE("the memory for sources is bounded") {
  SourceTable<int> table(4);
  for (SourceKey key = 0; key < 100; ++key) table[key] = static_cast<int>(key);
  CHECK(table.size() == 4);
  CHECK(table[99] == 99);
  CHECK(table[96] == 96);
  CHECK(table[200] == 0);
  CHECK(table[96] == 96);  // asked for since
  CHECK(table[97] == 0);   // made anew
}
