// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/network.h"

#include <catch2/catch.hpp>

#include "proxy/config/host_port.h"
#include "proxy/config/units.h"

using namespace longhaul::config;
using boost::asio::ip::make_address;

TEST_CASE("a printed network parses to the same network") {
  for (std::string_view text : {"10.1.0.0/16", "0.0.0.0/0", "192.168.1.1/32", "fd00::/8", "::/0",
                                "fe80::1/128", "10.10.1.128/25", "2001:db8:8000::/33"}) {
    const auto network = parse_network(text);
    REQUIRE(network);
    CHECK(to_text(*network) == text);
  }
  CHECK(to_text(parse_network("10.1.2.3").value()) == "10.1.2.3/32");
  CHECK(to_text(parse_network("fd00::1").value()) == "fd00::1/128");
  CHECK(to_text(parse_network("::ffff:10.1.0.0/112").value()) == "10.1.0.0/16");
}

TEST_CASE("a text that is not a network, or has bits after its prefix, is refused") {
  for (std::string_view text :
       {"", "/", "10.1.0.0/", "10.1.0.0/33", "10.1.0.0/-1", "10.1.0.0/+8", "10.1/16", "10.1.2.3/16",
        "fd00::1/8", "::/129", "fe80::1%lo", "name/8", "10.1.0.0/16/16", " 10.1.0.0/16", "10.1.0.0 /16",
        "::ffff:10.1.0.0/95", "0.0.0.1/0"})
    CHECK_FALSE(parse_network(text));
  CHECK(to_text(parse_network_loosely("10.1.2.3/16").value()) == "10.1.0.0/16");
}

TEST_CASE("an address belongs to a network by its leading bits") {
  const auto in = [](std::string_view network, const char* address) {
    return contains(parse_network(network).value(), make_address(address));
  };
  CHECK(in("10.10.1.128/25", "10.10.1.255"));
  CHECK_FALSE(in("10.10.1.128/25", "10.10.1.127"));
  CHECK(in("0.0.0.0/0", "255.255.255.255"));
  CHECK(in("10.0.0.1/32", "10.0.0.1"));
  CHECK_FALSE(in("10.0.0.1/32", "10.0.0.0"));
  CHECK(in("fd00::/8", "fdff::1"));
  CHECK_FALSE(in("fd00::/8", "fc00::1"));
  CHECK(in("2001:db8:8000::/33", "2001:db8:ffff::"));
  CHECK_FALSE(in("2001:db8:8000::/33", "2001:db8:7fff::"));
}

TEST_CASE("an IPv4-mapped address counts as IPv4, and families never mix") {
  CHECK(contains(parse_network("10.0.0.0/8").value(), make_address("::ffff:10.1.1.1")));
  CHECK_FALSE(contains(parse_network("::/0").value(), make_address("::ffff:10.1.1.1")));
  CHECK_FALSE(contains(parse_network("::/0").value(), make_address("10.1.1.1")));
  CHECK_FALSE(contains(parse_network("0.0.0.0/0").value(), make_address("::1")));
}

TEST_CASE("a printed host and port parse to the same host and port") {
  for (std::string_view text :
       {"10.1.1.1:80", "[::1]:65535", "files.example:445", "a-b_c.d1:1", "localhost:7600"})
    CHECK(to_text(parse_host_port(text, HostKind::address_or_name).value()) == text);
  CHECK(to_text(parse_host_port("[::ffff:10.1.1.1]:80", HostKind::address).value()) == "10.1.1.1:80");
}

TEST_CASE("an invalid host and port is reported with the reason") {
  const auto clause = [](std::string_view text) {
    const auto result = parse_host_port(text, HostKind::address);
    return result ? std::string("accepted") : result.error().message;
  };
  CHECK(clause("10.1.1.1") == "has no port; write 10.1.1.1:PORT");
  CHECK(clause("::1") == "has no port, or an IPv6 address without brackets; write [ADDRESS]:PORT");
  CHECK(clause("fd00:1:2:3:4:5:6:7:80") ==
        "has an IPv6 address without brackets; write [fd00:1:2:3:4:5:6:7]:80");
  CHECK(clause(":80") == "has no address; write 0.0.0.0:PORT or [::]:PORT for all addresses");
  CHECK(clause("10.1.1.1:0") == "has no port from 1 to 65535 after the last colon");
  CHECK(clause("10.1.1.1:65536") == "has no port from 1 to 65535 after the last colon");
  CHECK(clause("10.1.1.1:http") == "has no port from 1 to 65535 after the last colon");
  CHECK(clause("[::1:80") == "has an opening bracket without a closing one");
  CHECK(clause("[10.1.1.1]:80") == "has no IPv6 address between its brackets");
  CHECK(clause("localhost:80") == "has no IPv4 or IPv6 address before its port");
  for (std::string_view text :
       {"", "x", "[::1]", "10.1.1:80", "1.2.3.4.5:80", "a..b:80", "-a:80", "a b:80", "[]:80"})
    CHECK_FALSE(parse_host_port(text, HostKind::address_or_name).has_value());
}

TEST_CASE("rates use decimal prefixes exactly, sizes binary ones") {
  CHECK(parse_rate("64kbit") == 64'000u);
  CHECK(parse_rate("1.544mbit") == 1'544'000u);
  CHECK(parse_rate("51.84mbit") == 51'840'000u);
  CHECK(parse_rate("1gbit") == 1'000'000'000u);
  CHECK(parse_rate("1 Gbit") == 1'000'000'000u);
  CHECK(parse_rate("0.001kbit") == 1u);
  CHECK(parse_size("65535") == 65535u);
  CHECK(parse_size("512MiB") == 512ull << 20);
  CHECK(parse_size("1.5GiB") == 3ull << 29);
  for (std::string_view text :
       {"", "kbit", "0kbit", "0", "64", "64k", "64kbps", "64kB", "-1kbit", "1.kbit", ".5mbit", "1.5bit",
        "1..5mbit", "1.5.5mbit", "1e3bit", "99999999999gbit", "64kbit/s"})
    CHECK_FALSE(parse_rate(text));
  for (std::string_view text : {"", "MiB", "1MB", "1M", "-1", "1.5", "99999999999TiB"})
    CHECK_FALSE(parse_size(text));
  for (std::string_view text :
       {"64kbit", "1.544mbit", "51.84mbit", "1gbit", "9.6kbit", "1bit", "1234.567kbit"})
    CHECK(rate_to_text(parse_rate(text).value()) == text);
  for (std::uint64_t bytes :
       {0ull, 1ull, 1023ull, 1024ull, 65535ull, 512ull << 20, 3ull << 29, (1ull << 40) + 1})
    CHECK(parse_size(size_to_text(bytes)) == bytes);
}
