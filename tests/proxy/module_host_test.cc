// SPDX-License-Identifier: Apache-2.0
#include "proxy/module_host.h"

#include <catch2/catch.hpp>

#include "proxy/flows/ends.h"

using namespace longhaul;

namespace {

config::Config with_two_peers() {
  config::Config config;
  config.peers.resize(2);
  config.peers[0].name = "berlin";
  config.peers[0].networks = {*config::parse_network("10.1.0.0/16"), *config::parse_network("fd10:1::/64")};
  config.peers[1].name = "tokyo";
  config.peers[1].networks = {*config::parse_network("10.2.0.0/16")};
  return config;
}

std::string owner_of(const std::string& client) {
  return peer_of_client(with_two_peers(), flows::bytes_of(boost::asio::ip::make_address(client)));
}

}  // namespace

TEST_CASE("a client's records are those of the peer whose networks have it") {
  CHECK(owner_of("10.1.2.3") == "berlin");
  CHECK(owner_of("fd10:1::7") == "berlin");
  CHECK(owner_of("10.2.0.1") == "tokyo");
  CHECK(owner_of("10.3.0.1").empty());
}

TEST_CASE("a client outside of its peer's networks still belongs to that peer") {
  flows::Destination server;
  server.address = boost::asio::ip::make_address("10.1.0.9");
  // An address of berlin's that tokyo shows: its records concern tokyo alone.
  const auto ends = flows::ends_of_peers_client("tokyo", boost::asio::ip::make_address("10.1.2.3"), server);
  CHECK(peer_of_client(with_two_peers(), ends.client) == "tokyo");
  const auto removed = flows::ends_of_peers_client("oslo", boost::asio::ip::make_address("10.1.2.3"), server);
  CHECK(peer_of_client(with_two_peers(), removed.client).empty());
}
