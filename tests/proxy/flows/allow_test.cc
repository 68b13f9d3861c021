// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/allow.h"

#include <catch2/catch.hpp>
#include <string>

using namespace longhaul;
using boost::asio::ip::make_address;

namespace {

bool peer_may(std::vector<std::string> allow, const char* wanted, std::vector<std::string> own = {}) {
  std::vector<config::Network> networks;
  for (const auto& text : allow) networks.push_back(config::parse_network(text).value());
  std::vector<boost::asio::ip::address> addresses;
  for (const auto& text : own) addresses.push_back(make_address(text));
  return flows::peer_may_dial(networks, make_address(wanted), addresses);
}

}  // namespace

TEST_CASE("a client address is used only for the peer with the longest prefix, and never for two") {
  std::vector<config::Peer> peers(2);
  peers[0].name = "one", peers[1].name = "two";
  const auto networks = [](std::vector<std::string> texts) {
    std::vector<config::Network> list;
    for (const auto& text : texts) list.push_back(config::parse_network(text).value());
    return list;
  };
  peers[0].networks = networks({"10.0.0.0/8", "fd00::/16", "0.0.0.0/0", "::/0"});
  peers[1].networks = networks({"10.1.0.0/16", "10.2.2.7/32", "fd00:1::/32"});
  const auto own = networks({"10.2.0.0/16", "10.2.2.0/24", "127.0.0.0/8", "fd00:2::/64", "10.1.3.0/24"});
  const auto shows = [&](std::size_t peer, const char* client) {
    return flows::peer_may_show(peers, peers[peer], own, make_address(client));
  };
  for (const char* client : {"10.9.0.1", "192.0.2.1", "::ffff:10.9.0.1", "fd00:9::1", "2001:db8::1"}) {
    CHECK(shows(0, client));
    CHECK_FALSE(shows(1, client));
  }
  for (const char* client : {"10.1.0.1", "::ffff:10.1.0.1", "fd00:1::1", "10.2.2.7"}) {
    CHECK_FALSE(shows(0, client));
    CHECK(shows(1, client));
  }
  // Of this machine's own networks, and of none.
  for (const char* client : {"10.2.0.9", "10.2.2.9", "::ffff:10.2.2.9", "fd00:2::9", "10.1.3.1", "127.0.0.1",
                             "::1", "::ffff:127.0.0.1", "169.254.1.1", "fe80::1", "224.0.0.1", "ff02::1",
                             "255.255.255.255", "0.0.0.0", "::"})
    for (const std::size_t peer : {0, 1}) CHECK_FALSE(shows(peer, client));
}

TEST_CASE("a peer may connect only to what allow names") {
  CHECK(peer_may({"10.1.0.0/16"}, "10.1.2.3"));
  CHECK_FALSE(peer_may({"10.1.0.0/16"}, "10.2.0.1"));
  CHECK_FALSE(peer_may({}, "10.1.2.3"));
  CHECK(peer_may({"fd00:1::/32"}, "fd00:1::5"));
  CHECK_FALSE(peer_may({"0.0.0.0/0"}, "fd00:1::5"));
}

TEST_CASE("an IPv4-mapped IPv6 address is treated as its IPv4 address") {
  CHECK(peer_may({"10.1.0.0/16"}, "::ffff:10.1.2.3"));
  CHECK_FALSE(peer_may({"::/0"}, "::ffff:10.1.2.3"));
  CHECK_FALSE(peer_may({"0.0.0.0/0"}, "::ffff:127.0.0.1"));
}

TEST_CASE("loopback is dialled only if allow names it and nothing else") {
  CHECK_FALSE(peer_may({"0.0.0.0/0"}, "127.0.0.1"));
  CHECK_FALSE(peer_may({"0.0.0.0/0"}, "127.9.9.9"));
  CHECK_FALSE(peer_may({"126.0.0.0/7"}, "127.0.0.1"));
  CHECK(peer_may({"127.0.0.1"}, "127.0.0.1"));
  CHECK(peer_may({"127.0.0.0/8"}, "127.0.0.1"));
  CHECK_FALSE(peer_may({"::/0"}, "::1"));
  CHECK_FALSE(peer_may({"::/127"}, "::1"));
  CHECK(peer_may({"::1"}, "::1"));
}

TEST_CASE("link-local is dialled only if allow names it and nothing else") {
  CHECK_FALSE(peer_may({"169.0.0.0/8"}, "169.254.169.254"));
  CHECK(peer_may({"169.254.0.0/16"}, "169.254.169.254"));
  CHECK(peer_may({"169.254.169.254"}, "169.254.169.254"));
  CHECK_FALSE(peer_may({"fe00::/8"}, "fe80::1"));
  CHECK(peer_may({"fe80::/10"}, "fe80::1"));
}

TEST_CASE("the machine's own addresses are dialled only if allow names each of them") {
  CHECK_FALSE(peer_may({"10.1.0.0/16"}, "10.1.0.1", {"10.1.0.1", "fd00::1"}));
  CHECK(peer_may({"10.1.0.0/16"}, "10.1.0.2", {"10.1.0.1", "fd00::1"}));
  CHECK(peer_may({"10.1.0.0/16", "10.1.0.1/32"}, "10.1.0.1", {"10.1.0.1"}));
  CHECK_FALSE(peer_may({"fd00::/8"}, "fd00::1", {"fd00::1"}));
}

TEST_CASE("addresses that no server can have are never dialled") {
  for (const char* address : {"0.0.0.0", "0.1.2.3", "224.0.0.1", "240.0.0.1", "255.255.255.255"})
    CHECK_FALSE(peer_may({"0.0.0.0/0", std::string(address) + "/32"}, address));
  for (const char* address : {"::", "ff02::1"})
    CHECK_FALSE(peer_may({"::/0", std::string(address) + "/128"}, address));
}

TEST_CASE("a client at another site cannot reach this machine's own addresses through its proxy") {
  const std::vector own{make_address("10.1.0.1")};
  const auto may = [&](const char* client, const char* wanted) {
    return flows::client_may_dial(make_address(client), make_address(wanted), own);
  };
  CHECK(may("10.1.0.9", "10.2.0.1"));
  CHECK_FALSE(may("10.1.0.9", "127.0.0.1"));
  CHECK_FALSE(may("10.1.0.9", "::ffff:127.0.0.1"));
  CHECK_FALSE(may("10.1.0.9", "10.1.0.1"));
  CHECK_FALSE(may("10.1.0.9", "fe80::1"));
  CHECK(may("127.0.0.1", "127.0.0.1"));
  CHECK(may("10.1.0.1", "10.1.0.1"));
  CHECK_FALSE(may("127.0.0.1", "0.0.0.0"));
}
