// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/closed_rules.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using intercept::closed_rules;
using intercept::ClosedRules;

namespace {

std::vector<config::Network> parsed_networks(std::initializer_list<std::string_view> texts) {
  std::vector<config::Network> networks;
  for (auto text : texts) networks.push_back(config::parse_network(text).value());
  return networks;
}

config::Config closable_config() {
  config::Config config;
  config.intercept.mode = config::Intercept::Mode::tproxy;
  config.intercept.interfaces = {"lan0", "lan1"};
  config.peers.resize(1);
  config.peers[0].networks = parsed_networks({"10.2.0.0/16", "fd02::/64", "10.2.3.0/24"});
  return config;
}

bool contains_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the global fail = closed covers traffic between the LANs and peers' networks, both ways") {
  config::Config config = closable_config();
  CHECK_FALSE(closed_rules(config)->close_something());
  config.intercept.fail = config::Fail::closed;
  const auto rules = closed_rules(config);
  CHECK(rules->close_something());
  CHECK(closed_table_text(*rules) == R"(table inet longhaul_closed_7650 {
  comment "fail = closed of Longhaul; removed by: longhaul fail-closed remove FILE.toml"
  set peers4 { type ipv4_addr; flags interval; elements = { 10.2.0.0/16 }; }
  set peers6 { type ipv6_addr; flags interval; elements = { fd02::/64 }; }
  chain forward {
    type filter hook forward priority filter; policy accept;
    meta l4proto != tcp accept
    iifname { "lan0", "lan1" } goto leaving
    oifname { "lan0", "lan1" } goto arriving
  }
  chain leaving {
    goto leaving_otherwise
  }
  chain leaving_otherwise {
    ip daddr @peers4 goto refuse
    ip6 daddr @peers6 goto refuse
  }
  chain arriving {
    goto arriving_otherwise
  }
  chain arriving_otherwise {
    ip saddr @peers4 goto discard
    ip6 saddr @peers6 goto discard
  }
  chain refuse {
    counter reject with tcp reset
    drop
  }
  chain discard {
    counter drop
  }
}
)");
}

TEST_CASE("rules apply in order, to packets of either direction, and fragments match no port") {
  config::Config config = closable_config();
  config::Rule voice, files, rest;
  voice.to_ports = {5060};
  voice.fail = config::Fail::open;
  files.to_ports = {445};
  files.to_networks = parsed_networks({"10.2.0.0/16", "10.2.9.0/24"});
  files.fail = config::Fail::closed;
  rest.from_networks = parsed_networks({"10.1.0.0/16"});
  config.rules = {voice, files, rest};
  const std::string text = closed_table_text(*closed_rules(config));
  CHECK(contains_text(text, R"(  chain leaving {
    tcp dport { 5060 } accept
    ip daddr @peers4 tcp sport { 5060 } tcp flags & (fin | syn | rst | ack) != syn accept
    ip6 daddr @peers6 tcp sport { 5060 } tcp flags & (fin | syn | rst | ack) != syn accept
    ip daddr { 10.2.0.0/16 } tcp dport { 445 } goto refuse
    ip daddr { 10.2.0.0/16 } ip frag-off & 0x1fff != 0 goto refuse
    ip daddr @peers4 ip saddr { 10.2.0.0/16 } tcp sport { 445 } goto refuse
    ip daddr @peers4 ip saddr { 10.2.0.0/16 } ip frag-off & 0x1fff != 0 goto refuse
    ip saddr { 10.1.0.0/16 } goto leaving_otherwise
    ip daddr @peers4 ip daddr { 10.1.0.0/16 } tcp flags & (fin | syn | rst | ack) != syn goto leaving_otherwise
    goto leaving_otherwise
  }
  chain leaving_otherwise {
  }
  chain arriving {
    tcp sport { 5060 } tcp flags & (fin | syn | rst | ack) != syn accept
    ip saddr @peers4 tcp dport { 5060 } accept
    ip6 saddr @peers6 tcp dport { 5060 } accept
    ip saddr { 10.2.0.0/16 } tcp sport { 445 } goto discard
    ip saddr { 10.2.0.0/16 } ip frag-off & 0x1fff != 0 goto discard
    ip saddr @peers4 ip daddr { 10.2.0.0/16 } tcp dport { 445 } goto discard
    ip saddr @peers4 ip daddr { 10.2.0.0/16 } ip frag-off & 0x1fff != 0 goto discard
)"));
}

TEST_CASE("a rule without addresses that closes a port also closes fragments of both families") {
  config::Config config = closable_config();
  config::Rule rule;
  rule.to_ports = {22, 23};
  rule.fail = config::Fail::closed;
  config.rules = {rule};
  const std::string text = closed_table_text(*closed_rules(config));
  CHECK(contains_text(
      text,
      "  chain leaving {\n    tcp dport { 22, 23 } goto refuse\n    ip frag-off & 0x1fff != 0 goto refuse\n"
      "    frag frag-off != 0 goto refuse\n    ip daddr @peers4 tcp sport { 22, 23 } goto refuse\n"));
}

TEST_CASE("a far side without a configured LAN closes packets from and to peers' networks") {
  config::Config config = closable_config();
  config.intercept = {.mode = config::Intercept::Mode::off, .fail = config::Fail::closed};
  CHECK_FALSE(closed_rules(config)->close_something());  // forwards and SOCKS alone: nothing is forwarded
  config.link.allow = parsed_networks({"10.1.0.0/16"});
  const auto rules = closed_rules(config);
  REQUIRE(rules->close_something());
  CHECK(contains_text(closed_table_text(*rules),
                      "    ip daddr @peers4 goto leaving\n    ip saddr @peers4 goto arriving\n"
                      "    ip6 daddr @peers6 goto leaving\n    ip6 saddr @peers6 goto arriving\n"));
}

TEST_CASE("the transparent rules intercept closed flows even if their destination did not answer") {
  config::Config config = closable_config();
  config.intercept.fail = config::Fail::closed;
  config::Rule open;
  open.to_ports = {5060};
  open.fail = config::Fail::open;
  config.rules = {open};
  CHECK(closed_flows_text(*closed_rules(config), "goto admit") ==
        R"(  set peers4 { type ipv4_addr; flags interval; elements = { 10.2.0.0/16 }; }
  set peers6 { type ipv6_addr; flags interval; elements = { fd02::/64 }; }
  chain closed_flows {
    tcp dport { 5060 } return
    goto closed_otherwise
  }
  chain closed_otherwise {
    ip daddr @peers4 goto admit
    ip6 daddr @peers6 goto admit
  }
)");
}

TEST_CASE("an invalid interface name is an error") {
  config::Config config = closable_config();
  config.intercept.fail = config::Fail::closed;
  config.intercept.interfaces = {"lan0\" accept; }"};
  CHECK(closed_rules(config).error().message == "\"lan0\" accept; }\" is not a valid interface name");
}
