// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/rules.h"

#include <catch2/catch.hpp>

#include "proxy/modules/modules.h"

using namespace longhaul::config;
using boost::asio::ip::make_address;

namespace {

Rule rule(std::vector<std::uint16_t> ports, std::vector<std::string_view> to,
          std::vector<std::string_view> from, std::vector<std::pair<std::string, std::string>> features,
          std::optional<Fail> fail = {}) {
  Rule made;
  made.to_ports = std::move(ports);
  for (auto text : to) made.to_networks.push_back(parse_network(text).value());
  for (auto text : from) made.from_networks.push_back(parse_network(text).value());
  made.features = std::move(features);
  made.fail = fail;
  return made;
}

}  // namespace

TEST_CASE("the first matching rule decides, on top of the global settings") {
  Config config;
  config.intercept.fail = Fail::closed;
  config.peers.resize(1);
  config.rules = {rule({445, 139}, {}, {}, {{"compression", "false"}}, Fail::open),
                  rule({}, {"10.2.0.0/16", "fd00:2::/64"}, {"10.1.0.0/16"}, {{"fec", "10:2"}}),
                  rule({445}, {}, {}, {{"preset", "B"}})};
  Features global = standard_features(longhaul::modules::feature_table());
  global.modules.set("smb", 0);
  const auto branch = make_address("10.1.0.1"), server = make_address("10.2.0.1"),
             other = make_address("10.3.0.1");

  const FlowPolicy smb = policy_for(config, global, branch, server, 445);
  CHECK(smb.rule == 0u);
  CHECK_FALSE(smb.features.compression);
  CHECK(smb.features.fec.mode == Fec::Mode::adaptive);
  CHECK(smb.features.modules.value("smb") == 0);
  CHECK_FALSE(is_closed(config, smb, &config.peers[0]));

  const FlowPolicy web = policy_for(config, global, branch, server, 80);
  CHECK(web.rule == 1u);
  CHECK(web.features.fec == Fec{Fec::Mode::fixed, 10, 2});
  CHECK(web.features.compression);
  CHECK(is_closed(config, web, &config.peers[0]));
  CHECK_FALSE(is_closed(config, web, nullptr));  // a destination of no peer, and no rule closes it

  for (const auto& [client, destination] : {std::pair{other, server}, std::pair{branch, other}}) {
    const FlowPolicy none = policy_for(config, global, client, destination, 80);
    CHECK_FALSE(none.rule);
    CHECK(none.features == global);
    CHECK(is_closed(config, none, &config.peers[0]));
  }
}

TEST_CASE("a rule without conditions matches everything, and a host name matches no network") {
  Config config;
  config.rules = {rule({}, {"0.0.0.0/0", "::/0"}, {}, {}), rule({}, {}, {}, {})};
  const auto client = make_address("fd00::1");
  CHECK(policy_for(config, {}, client, make_address("10.0.0.1"), 1).rule == 0u);
  CHECK(policy_for(config, {}, client, make_address("::ffff:10.0.0.1"), 1).rule == 0u);
  CHECK(policy_for(config, {}, client, std::nullopt, 1).rule == 1u);
}

TEST_CASE("a destination belongs to the peer with the longest prefix") {
  Config config;
  config.peers.resize(3);
  config.peers[0].networks = {parse_network("10.0.0.0/8").value(), parse_network("::/0").value()};
  config.peers[1].networks = {parse_network("10.2.0.0/16").value()};
  CHECK(peer_for(config, make_address("10.1.1.1")) == &config.peers[0]);
  CHECK(peer_for(config, make_address("10.2.1.1")) == &config.peers[1]);
  CHECK(peer_for(config, make_address("fd00::1")) == &config.peers[0]);
  CHECK(peer_for(config, make_address("192.168.0.1")) == nullptr);
}

TEST_CASE("a name belongs to the peer with the longest match, or to the only peer where none claims names") {
  Config config;
  config.peers.resize(3);
  CHECK(peer_for_name(config, "files.corp") == nullptr);
  const auto claim = [&](std::size_t peer, std::string_view text) {
    config.peers[peer].names.push_back(parse_name_pattern(text).value());
  };
  claim(0, "*.corp");
  claim(1, "*.Branch.corp");
  claim(1, "files.corp");
  claim(2, "*.files.corp");
  CHECK(peer_for_name(config, "FILES.corp") == &config.peers[1]);
  CHECK(peer_for_name(config, "a.files.corp.") == &config.peers[2]);
  CHECK(peer_for_name(config, "a.b.branch.CORP") == &config.peers[1]);
  CHECK(peer_for_name(config, "branch.corp") == &config.peers[0]);
  CHECK(peer_for_name(config, "corp") == nullptr);
  CHECK(peer_for_name(config, "files.xcorp") == nullptr);
  claim(2, "*");
  CHECK(peer_for_name(config, "corp") == &config.peers[2]);
  config.peers.resize(1);
  CHECK(peer_for_name(config, "elsewhere.example") == nullptr);
  config.peers[0].names.clear();
  CHECK(peer_for_name(config, "elsewhere.example") == &config.peers[0]);
}

TEST_CASE("a name pattern matches one name, the names below a domain, or every name") {
  for (const char* text : {"a", "files.corp", "*.corp", "*", "xn--bcher-kva.example", "_ldap._tcp.corp", "3com.example"})
    CHECK(parse_name_pattern(text).value().to_text() == text);
  CHECK(parse_name_pattern("*.Corp.").value().to_text() == "*.corp");
  for (const std::string& text :
       {std::string(), std::string("."), std::string("*."), std::string("*corp"), std::string("**"), std::string("a..b"),
        std::string(".a"), std::string("a.*.b"), std::string("a b"), std::string("10.0.0.1"), std::string("fd00::1"),
        std::string(64, 'a'), std::string("b\xc3\xbc.example")})
    CHECK_FALSE(parse_name_pattern(text));
}

TEST_CASE("a rule with fail = closed covers every destination, the global setting those of peers") {
  Config config;
  config.peers.resize(1);
  config.rules = {rule({22}, {}, {}, {}, Fail::closed)};
  const auto client = make_address("10.1.0.1"), anywhere = make_address("192.0.2.1");
  CHECK(is_closed(config, policy_for(config, {}, client, anywhere, 22), nullptr));
  CHECK_FALSE(is_closed(config, policy_for(config, {}, client, anywhere, 80), &config.peers[0]));
  config.intercept.fail = Fail::closed;
  CHECK(is_closed(config, policy_for(config, {}, client, anywhere, 80), &config.peers[0]));
  CHECK_FALSE(is_closed(config, policy_for(config, {}, client, anywhere, 80), nullptr));
}

TEST_CASE("if a destination behind one peer is closed, no other peer dials it") {
  Config config;
  config.intercept.fail = Fail::closed;
  config.peers.resize(2);
  config.peers[0].networks = {parse_network("10.1.0.0/16").value()};
  config.peers[1].networks = {parse_network("0.0.0.0/0").value()};
  config.link.allow = {parse_network("10.0.0.0/8").value()};
  const auto client = make_address("10.9.0.1"), here = make_address("10.2.0.1"),
             behind_peer = make_address("10.1.0.1"), elsewhere = make_address("192.0.2.1");
  CHECK(leaves_again(config, client, behind_peer, 80));
  CHECK(leaves_again(config, client, elsewhere, 80));
  CHECK_FALSE(leaves_again(config, client, here, 80));  // [link] allow says more exactly where it is
  config.rules = {rule({80}, {}, {}, {}, Fail::open)};
  CHECK_FALSE(leaves_again(config, client, behind_peer, 80));
  CHECK(leaves_again(config, client, behind_peer, 81));
}
