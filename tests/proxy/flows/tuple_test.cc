// SPDX-License-Identifier: Apache-2.0
// Tests how flows named by their ends are read, written and compared.
#include "proxy/flows/tuple.h"

#include <catch2/catch.hpp>

using namespace longhaul::flows;
using boost::asio::ip::make_address;
using boost::asio::ip::tcp;

namespace {

Tuple tuple_of(std::string_view text) {
  const auto tuple = parse_tuple(text);
  REQUIRE(tuple.has_value());
  return *tuple;
}

}  // namespace

TEST_CASE("a parsed tuple prints as it was typed") {
  const auto text =
      GENERATE(as<std::string>{}, "10.0.0.1:5000-10.0.2.2:445", "[fd00::1]:5000-[fd00::2]:445",
               "10.0.0.1-10.0.2.2:445", "10.0.0.1:5000-file-server.example:445", "[fd00::1]-[fd00::2]:65535",
               "10.0.0.1:1-localhost:1", "10.0.0.1:5-[fd00::2]:80");
  const auto tuple = parse_tuple(text);
  REQUIRE(tuple.has_value());
  CHECK(to_text(*tuple) == text);
}

TEST_CASE("an IPv6 client without a port needs no brackets, and a mapped address counts as IPv4") {
  CHECK(to_text(tuple_of("fd00::1-[fd00::2]:445")) == "[fd00::1]-[fd00::2]:445");
  CHECK(to_text(tuple_of("::ffff:10.0.0.1-[::ffff:10.0.2.2]:445")) == "10.0.0.1-10.0.2.2:445");
}

TEST_CASE("an invalid tuple is refused with a sentence that shows the form") {
  const auto text = GENERATE(
      as<std::string>{}, "", "-", "7", "10.0.0.1:5000", "10.0.0.1:5000-10.0.2.2", "10.0.0.1:5000-10.0.2.2:0",
      "10.0.0.1:0-10.0.2.2:445", "10.0.0.1:65536-10.0.2.2:445", "10.0.0.1:-10.0.2.2:445",
      "10.0.0.1:5000-10.0.2.2:", "host:5000-10.0.2.2:445", "10.0.0.1:5000-fd00::2:445",
      "10.0.0.1:5000-[fd00::2:445", "[10.0.0.1]:1-10.0.2.2:445", "10.0.0.1:5000-[name]:445",
      "10.0.0.1:5000-:445", "10.0.0.1:5000-a b:445", "10.0.0.1:+5-10.0.2.2:445", "10.0.0.1:5x-10.0.2.2:445");
  const auto tuple = parse_tuple(text);
  REQUIRE(tuple.has_error());
  CHECK(tuple.error().message.find("10.0.0.1:5000-10.0.2.2:445") != std::string::npos);
  CHECK(parse_tuple("10.0.0.1:5-" + std::string(254, 'a') + ":445").has_error());
}

TEST_CASE("a tuple matches the flow with its addresses, and any client port if none was typed") {
  const Destination server{{}, make_address("10.0.2.2"), 445};
  const tcp::endpoint client{make_address("::ffff:10.0.0.1"), 5000};
  CHECK(matches(tuple_of("10.0.0.1:5000-10.0.2.2:445"), client, server));
  CHECK(matches(tuple_of("10.0.0.1-10.0.2.2:445"), client, server));
  CHECK_FALSE(matches(tuple_of("10.0.0.1:5001-10.0.2.2:445"), client, server));
  CHECK_FALSE(matches(tuple_of("10.0.0.1:5000-10.0.2.2:139"), client, server));
  CHECK_FALSE(matches(tuple_of("10.0.0.2:5000-10.0.2.2:445"), client, server));
  CHECK_FALSE(matches(tuple_of("10.0.0.1:5000-10.0.2.3:445"), client, server));
  CHECK_FALSE(matches(tuple_of("10.0.0.1:5000-server:445"), client, server));
  CHECK(matches(tuple_of("10.0.0.1:5000-server:445"), client, Destination{"server", {}, 445}));
}
