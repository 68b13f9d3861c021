// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/nft_rules.h"

#include <catch2/catch.hpp>

using namespace longhaul::intercept;
using boost::asio::ip::make_address;

TEST_CASE("the rules of transparent mode read as the documentation shows them") {
  const RuleSet rules{
      .interfaces = {"lan0", "lan1.7"},
      .port = 7650,
      .peers = {make_address("10.10.100.2"), make_address("fd10:100::2"), make_address("::ffff:10.10.100.2")},
      .fast_connect = true};
  CHECK(table_text(rules) == R"(table inet longhaul_7650 {
  flags owner
  set refused4 { type ipv4_addr . inet_service; flags timeout; timeout 10s; size 65536; }
  set refused6 { type ipv6_addr . inet_service; flags timeout; timeout 10s; size 65536; }
  chain prerouting {
    type filter hook prerouting priority mangle; policy accept;
    tcp flags & (fin | syn | rst | ack) == syn goto new_flows
    meta l4proto { tcp, icmp, ipv6-icmp } socket transparent 1 meta mark set 0x4c481de2 accept
  }
  chain new_flows {
    iifname != { "lan0", "lan1.7" } accept
    fib daddr type { local, broadcast, anycast, multicast } accept
    ip saddr { 10.10.100.2 } accept
    ip daddr { 10.10.100.2 } accept
    ip6 saddr { fd10:100::2 } accept
    ip6 daddr { fd10:100::2 } accept
    ip daddr . tcp dport @refused4 accept
    ip6 daddr . tcp dport @refused6 accept
    goto take
  }
  chain take {
    meta nfproto ipv4 meta l4proto tcp tproxy ip to 127.0.0.1:7650 meta mark set 0x4c481de2 accept
    meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:7650 meta mark set 0x4c481de2 accept
  }
}
)");
}

TEST_CASE("without fast_connect only destinations that answered lately are taken") {
  const std::string text =
      table_text({.interfaces = {"lan0"}, .port = 7650, .peers = {}, .fast_connect = false});
  CHECK(text.find("update @answered4 { ip saddr . tcp sport }") != std::string::npos);
  CHECK(text.find("    ip daddr . tcp dport != @answered4 accept\n") < text.find("tproxy ip to"));
  CHECK(text.find("    ip6 daddr . tcp dport != @answered6 accept\n") < text.find("tproxy ip to"));
}

TEST_CASE("without interfaces no new flow is taken and packets of live ones are still diverted") {
  const std::string text = table_text({.interfaces = {}, .port = 7650, .peers = {}, .fast_connect = true});
  CHECK(text.find("chain new_flows {\n    accept\n") != std::string::npos);
  CHECK(text.find("socket transparent 1 meta mark set") != std::string::npos);
}

TEST_CASE("refused servers are entered by family") {
  const std::vector<boost::asio::ip::tcp::endpoint> servers{
      {make_address("10.2.0.1"), 445}, {make_address("fd00::9"), 80}, {make_address("::ffff:10.2.0.2"), 1}};
  CHECK(refuse_text({}, servers) ==
        "add element inet longhaul_7650 refused4 { 10.2.0.1 . 445, 10.2.0.2 . 1 }\n"
        "add element inet longhaul_7650 refused6 { fd00::9 . 80 }\n");
}

TEST_CASE("what is no interface name never gets into a rule") {
  for (const char* name : {"lan0", "eth0.100", "br-lan", "wlp3s0"}) CHECK(is_interface_name(name));
  for (const char* name : {"", ".", "..", "a b", "a\"b", "a/b", "lan*", "a;b\n", "sixteen-letters-"})
    CHECK_FALSE(is_interface_name(name));
}
