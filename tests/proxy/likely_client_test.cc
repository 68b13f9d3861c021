// SPDX-License-Identifier: Apache-2.0
#include "proxy/likely_client.h"

#include <catch2/catch.hpp>

#include "proxy/config/read.h"

using namespace longhaul;

namespace {

net::Interface interface_at(const std::string& name, const std::string& address, const std::string& network) {
  return {.name = name,
          .addresses = {*config::parse_address(address)},
          .networks = {*config::parse_network(network)}};
}

std::vector<net::Interface> own_interfaces() {
  return {interface_at("wan0", "10.10.100.1", "10.10.100.0/24"),
          interface_at("lan0", "10.10.1.1", "10.10.1.0/24"), interface_at("lan0", "fe80::1", "fe80::/64"),
          interface_at("lan0", "fd10:1::1", "fd10:1::/64")};
}

const std::string kTransparent = "[intercept]\nmode = \"tproxy\"\ninterfaces = [\"lan0\"]\n";

std::string client_of(const std::string& server, const std::string& more = kTransparent,
                      const std::string& networks = "\"10.10.2.0/24\", \"fd10:2::/64\"") {
  const std::string text = "site = \"a\"\n[identity]\ncertificate = \"a.crt\"\nprivate_key = \"a.key\"\n" +
                           more + "[[peer]]\nname = \"b\"\naddress = \"10.10.100.2:7600\"\nnetworks = [" +
                           networks + "]\nfingerprint = \"sha256:" + std::string(64, 'a') + "\"\n";
  flows::Destination destination;
  boost::system::error_code is_a_name;
  destination.address = boost::asio::ip::make_address(server, is_a_name);
  if (is_a_name) destination.host = server;
  const auto found = likely_client(config::read_text(text, "a.toml"), own_interfaces(), destination);
  return found ? found->to_string() : "none";
}

}  // namespace

TEST_CASE("a server at a peer has clients behind an interface on which flows are intercepted") {
  CHECK(client_of("10.10.2.5") == "10.10.1.2");
  CHECK(client_of("fd10:2::5") == "fd10:1::2");  // not of the link-local network
  CHECK(client_of("::ffff:10.10.2.5") == "10.10.1.2");
  CHECK(client_of("192.0.2.1") == "10.10.1.2");  // nobody's: most likely a server on the internet
  CHECK(client_of("files.example") == "10.10.1.2");
  CHECK(client_of("10.10.2.5", "[intercept]\nmode = \"tproxy\"\ninterfaces = [\"lan7\"]\n") == "none");
}

TEST_CASE("a server at this site has clients at a peer") {
  CHECK(client_of("10.10.1.9") == "10.10.2.2");
  CHECK(client_of("fd10:1::9") == "fd10:2::2");
  CHECK(client_of("10.50.0.9", kTransparent + "[link]\nallow = [\"10.50.0.0/16\"]\n") == "10.10.2.2");
  CHECK(client_of("10.10.1.9", kTransparent, "\"10.10.2.7/32\"") == "10.10.2.7");
  CHECK(client_of("fd10:1::9", kTransparent, "\"10.10.2.0/24\"") == "none");  // the peer has no IPv6
}

TEST_CASE("without transparent mode the client is most likely this host") {
  CHECK(client_of("10.10.2.5", "") == "127.0.0.1");
  CHECK(client_of("fd10:2::5", "") == "::1");
  CHECK(client_of("10.10.1.9", "") == "10.10.2.2");  // at the peer, where it may be transparent
}
