// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/nft_rules.h"

#include <catch2/catch.hpp>

using namespace longhaul::intercept;
using boost::asio::ip::make_address;

TEST_CASE("the rules of transparent mode match the documentation") {
  const RuleSet rules{
      .interfaces = {"lan0", "lan1.7"},
      .port = 7650,
      .peers = {make_address("10.10.100.2"), make_address("fd10:100::2"), make_address("::ffff:10.10.100.2")},
      .fast_connect = true};
  CHECK(table_text(rules) == R"(table inet longhaul_7650 {
  flags owner
  set refused4 { type ipv4_addr . inet_service; flags timeout; timeout 10s; size 65536; }
  set refused6 { type ipv6_addr . inet_service; flags timeout; timeout 10s; size 65536; }
  set taken4 { type ipv4_addr . inet_service . ipv4_addr . inet_service; flags dynamic, timeout; timeout 5s; size 131072; }
  set taken6 { type ipv6_addr . inet_service . ipv6_addr . inet_service; flags dynamic, timeout; timeout 5s; size 131072; }
  set plain4 { type ipv4_addr . inet_service . ipv4_addr . inet_service; flags dynamic, timeout; timeout 5s; size 131072; }
  set plain6 { type ipv6_addr . inet_service . ipv6_addr . inet_service; flags dynamic, timeout; timeout 5s; size 131072; }
  set sources4 { type ipv4_addr; flags dynamic, timeout; timeout 10s; size 65536; }
  set sources6 { type ipv6_addr; flags dynamic, timeout; timeout 10s; size 65536; }
  set guarded4 { type ipv4_addr . ipv4_addr . inet_service; size 4096; }
  set guarded6 { type ipv6_addr . ipv6_addr . inet_service; size 4096; }
  counter over_rate { }
  counter source_limit { }
  counter flow_limit { }
  counter no_entry { }
  chain prerouting {
    type filter hook prerouting priority mangle; policy accept;
    meta l4proto udp accept
    tcp flags & (fin | syn | rst | ack) == syn goto new_flows
    meta l4proto { tcp, icmp, icmpv6 } socket transparent 1 meta mark set 0x4c481de2 accept
    jump strays
    iifname != { "lan0", "lan1.7" } accept
    ip saddr . tcp sport . ip daddr . tcp dport @taken4 update @taken4 { ip saddr . tcp sport . ip daddr . tcp dport } goto take
    ip6 saddr . tcp sport . ip6 daddr . tcp dport @taken6 update @taken6 { ip6 saddr . tcp sport . ip6 daddr . tcp dport } goto take
  }
  chain strays {
  }
  chain new_flows {
    ip saddr . ip daddr . tcp dport @guarded4 goto guarded
    ip6 saddr . ip6 daddr . tcp dport @guarded6 goto guarded
    iifname != { "lan0", "lan1.7" } accept
    fib daddr type { local, broadcast, anycast, multicast } accept
    ip saddr { 10.10.100.2 } accept
    ip daddr { 10.10.100.2 } accept
    ip6 saddr { fd10:100::2 } accept
    ip6 daddr { fd10:100::2 } accept
    socket transparent 1 goto take
    ip daddr . tcp dport @refused4 goto plain
    ip6 daddr . tcp dport @refused6 goto plain
    goto admit
  }
  chain guarded {
    fib daddr type { local, broadcast, anycast, multicast } accept
    ip saddr { 10.10.100.2 } accept
    ip daddr { 10.10.100.2 } accept
    ip6 saddr { fd10:100::2 } accept
    ip6 daddr { fd10:100::2 } accept
    socket transparent 1 goto take
    ip saddr . tcp sport . ip daddr . tcp dport @taken4 update @taken4 { ip saddr . tcp sport . ip daddr . tcp dport } goto take
    ip6 saddr . tcp sport . ip6 daddr . tcp dport @taken6 update @taken6 { ip6 saddr . tcp sport . ip6 daddr . tcp dport } goto take
    ip saddr . tcp sport . ip daddr . tcp dport @plain4 goto plain
    ip6 saddr . tcp sport . ip6 daddr . tcp dport @plain6 goto plain
    goto judge
  }
  chain admit {
    ip saddr . tcp sport . ip daddr . tcp dport @taken4 update @taken4 { ip saddr . tcp sport . ip daddr . tcp dport } goto take
    ip6 saddr . tcp sport . ip6 daddr . tcp dport @taken6 update @taken6 { ip6 saddr . tcp sport . ip6 daddr . tcp dport } goto take
    ip saddr . tcp sport . ip daddr . tcp dport @plain4 goto plain
    ip6 saddr . tcp sport . ip6 daddr . tcp dport @plain6 goto plain
    jump crowded
    update @sources4 { ip saddr limit rate 1000/second burst 2000 packets } goto judge
    update @sources6 { ip6 saddr limit rate 1000/second burst 2000 packets } goto judge
    counter name over_rate goto plain
  }
  chain crowded {
  }
  chain judge {
    update @taken4 { ip saddr . tcp sport . ip daddr . tcp dport } goto take
    update @taken6 { ip6 saddr . tcp sport . ip6 daddr . tcp dport } goto take
    counter name no_entry goto plain
  }
  chain take {
    meta nfproto ipv4 meta l4proto tcp tproxy ip to 127.0.0.1:7650 meta mark set 0x4c481de2 accept
    meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:7650 meta mark set 0x4c481de2 accept
  }
  chain plain {
    delete @taken4 { ip saddr . tcp sport . ip daddr . tcp dport }
    delete @taken6 { ip6 saddr . tcp sport . ip6 daddr . tcp dport }
    update @plain4 { ip saddr . tcp sport . ip daddr . tcp dport } accept
    update @plain6 { ip6 saddr . tcp sport . ip6 daddr . tcp dport } accept
    accept
  }
}
)");
}

TEST_CASE("without fast_connect only destinations that answered recently are intercepted") {
  const std::string text =
      table_text({.interfaces = {"lan0"}, .port = 7650, .peers = {}, .fast_connect = false});
  CHECK(text.find("update @answered4 { ip saddr . tcp sport }") != std::string::npos);
  CHECK(text.find("    ip daddr . tcp dport != @answered4 goto plain\n") < text.find("tproxy ip to"));
  CHECK(text.find("    ip6 daddr . tcp dport != @answered6 goto plain\n") < text.find("tproxy ip to"));
}

TEST_CASE("without interfaces no new flow is intercepted, and packets of existing ones still are") {
  const std::string text = table_text({.interfaces = {}, .port = 7650, .peers = {}, .fast_connect = true});
  CHECK(text.find("tcp dport @guarded6 goto guarded\n    accept\n") != std::string::npos);
  CHECK(text.find("socket transparent 1 meta mark set") != std::string::npos);
}

TEST_CASE("clients at their flow limit bypass the proxy, as do all clients at the daemon's limit") {
  RuleSet rules;
  CHECK(crowded_text(rules) == "flush chain inet longhaul_7650 crowded\n");
  rules.crowded = {.everyone = true,
                   .sources = {*longhaul::config::parse_network("10.1.0.9"),
                               *longhaul::config::parse_network("fd00:1::/64"),
                               *longhaul::config::parse_network("fd00:1::7"),
                               *longhaul::config::parse_network("fd00:2::7")}};
  const std::string everyone = "counter name flow_limit goto plain\n";
  const std::string v4 = "ip saddr { 10.1.0.9/32 } counter name source_limit goto plain\n";
  const std::string v6 = "ip6 saddr { fd00:1::/64, fd00:2::7/128 } counter name source_limit goto plain\n";
  const std::string add = "add rule inet longhaul_7650 crowded ";
  CHECK(crowded_text(rules) ==
        "flush chain inet longhaul_7650 crowded\n" + add + everyone + add + v4 + add + v6);
  CHECK(table_text(rules).find("  chain crowded {\n    " + everyone + "    " + v4 + "    " + v6 + "  }\n") !=
        std::string::npos);
}

TEST_CASE("guarded flows are intercepted first, on any interface, unless something is closed") {
  RuleSet rules{.interfaces = {"lan0"},
                .peers = {},
                .crowded = {},
                .guarded = {{make_address("10.10.1.2"), make_address("::ffff:10.10.2.2"), 445},
                            {make_address("fd10:1::2"), make_address("fd10:2::2"), 139}}};
  const std::string v4 = "10.10.1.2 . 10.10.2.2 . 445", v6 = "fd10:1::2 . fd10:2::2 . 139";
  const auto has = [&](const std::string& text) { return table_text(rules).find(text) != std::string::npos; };
  CHECK(has("inet_service; size 4096; elements = { " + v4 + " }; }"));
  CHECK(has("inet_service; size 4096; elements = { " + v6 + " }; }"));
  CHECK(guarded_text(rules) ==
        "flush set inet longhaul_7650 guarded4\nadd element inet longhaul_7650 guarded4 { " + v4 +
            " }\nflush set inet longhaul_7650 guarded6\nadd element inet longhaul_7650 guarded6 { " + v6 +
            " }\n");
  CHECK(strays_text(rules) ==
        "flush chain inet longhaul_7650 strays\n"
        "add rule inet longhaul_7650 strays ip saddr . ip daddr . tcp dport @guarded4 reject with tcp reset\n"
        "add rule inet longhaul_7650 strays ip6 saddr . ip6 daddr . tcp dport @guarded6 reject with tcp reset\n");
  CHECK(strays_text({}) == "flush chain inet longhaul_7650 strays\n");
  const std::string first = "    ip saddr . ip daddr . tcp dport @guarded4 goto guarded\n",
                    second = "    ip6 saddr . ip6 daddr . tcp dport @guarded6 goto guarded\n",
                    elsewhere = "    iifname != { \"lan0\" } accept\n";
  CHECK(has("chain new_flows {\n" + first + second + elsewhere));
  rules.closed_flows = "  chain closed_flows {\n  }\n";
  CHECK(has("chain new_flows {\n" + elsewhere + first + second));
  rules.interfaces.clear();
  rules.closed_flows.clear();
  CHECK(has("chain new_flows {\n" + first + second + "    accept\n"));
}

TEST_CASE("refused servers are added to the set of their address family") {
  const std::vector<boost::asio::ip::tcp::endpoint> servers{
      {make_address("10.2.0.1"), 445}, {make_address("fd00::9"), 80}, {make_address("::ffff:10.2.0.2"), 1}};
  CHECK(refuse_text({}, servers) ==
        "add element inet longhaul_7650 refused4 { 10.2.0.1 . 445, 10.2.0.2 . 1 }\n"
        "add element inet longhaul_7650 refused6 { fd00::9 . 80 }\n");
}

TEST_CASE("an invalid interface name never appears in a rule") {
  for (const char* name : {"lan0", "eth0.100", "br-lan", "wlp3s0"}) CHECK(is_interface_name(name));
  for (const char* name : {"", ".", "..", "a b", "a\"b", "a/b", "lan*", "a;b\n", "sixteen-letters-"})
    CHECK_FALSE(is_interface_name(name));
}
