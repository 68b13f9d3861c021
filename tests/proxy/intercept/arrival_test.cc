// SPDX-License-Identifier: Apache-2.0
// Tests the judgement whether a connection that began now would be intercepted.
#include "proxy/intercept/arrival.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using intercept::Arrival;
using intercept::why_not_taken;

namespace {

boost::asio::ip::address at(const char* text) { return boost::asio::ip::make_address(text); }

Arrival good() {
  return {.is_up = true,
          .error = {},
          .interfaces = {"lan0"},
          .peers = {at("10.9.0.2")},
          .own = {{"lan0", {at("10.1.0.1"), at("fd01::1")}, {}}, {"wan0", {at("10.9.0.1")}, {}}},
          .client_interface = "lan0"};
}

}  // namespace

TEST_CASE("a client behind a named interface is intercepted, whatever its family") {
  CHECK_FALSE(why_not_taken(good(), at("10.1.0.5"), at("10.2.0.5")));
  CHECK_FALSE(why_not_taken(good(), at("fd01::5"), at("fd02::5")));
  CHECK_FALSE(why_not_taken(good(), at("10.1.0.5"), std::nullopt));
}

TEST_CASE("a connection that would not be intercepted is explained with a remedy") {
  const auto check = [](const Arrival& arrival, const char* client, const char* server, const char* word) {
    const auto why = why_not_taken(arrival, at(client), at(server));
    REQUIRE(why);
    INFO(why->sentence);
    CHECK(why->sentence.find(word) != std::string::npos);
    CHECK_FALSE(why->remedy.empty());
  };
  auto down = good();
  down.is_up = false;
  down.error = "no such interface";
  check(down, "10.1.0.5", "10.2.0.5", "Interception is down (no such interface)");
  auto wrong = good();
  wrong.interfaces = {"wan0"};
  check(wrong, "10.1.0.5", "10.2.0.5", "leads through lan0, which [intercept] interfaces (wan0) does not name");
  auto lost = good();
  lost.client_interface.clear();
  check(lost, "192.0.2.1", "10.2.0.5", "no route to the client");
  check(good(), "10.1.0.1", "10.2.0.5", "The client is this host");
  check(good(), "::ffff:10.1.0.1", "10.2.0.5", "The client is this host");
  check(good(), "10.1.0.5", "fd01::1", "The destination is this host (lan0)");
  check(good(), "10.1.0.5", "10.9.0.2", "a peer's address");
  check(good(), "10.9.0.2", "10.2.0.5", "The client is a peer");
  check(good(), "10.1.0.5", "224.0.0.1", "not the address of a single host");
}
