// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/rules.h"

#include <catch2/catch.hpp>

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

TEST_CASE("the first rule that matches decides, on top of what is in force globally") {
  Config config;
  config.intercept.fail = Fail::closed;
  config.rules = {rule({445, 139}, {}, {}, {{"compression", "false"}}, Fail::open),
                  rule({}, {"10.2.0.0/16", "fd00:2::/64"}, {"10.1.0.0/16"}, {{"fec", "10:2"}}),
                  rule({445}, {}, {}, {{"preset", "B"}})};
  Features global;
  global.smb = false;
  const auto branch = make_address("10.1.0.1"), server = make_address("10.2.0.1"),
             other = make_address("10.3.0.1");

  const FlowPolicy smb = policy_for(config, global, branch, server, 445);
  CHECK(smb.rule == 0u);
  CHECK_FALSE(smb.features.compression);
  CHECK(smb.features.fec.mode == Fec::Mode::adaptive);
  CHECK_FALSE(smb.features.smb);
  CHECK(smb.fail == Fail::open);

  const FlowPolicy web = policy_for(config, global, branch, server, 80);
  CHECK(web.rule == 1u);
  CHECK(web.features.fec == Fec{Fec::Mode::fixed, 10, 2});
  CHECK(web.features.compression);
  CHECK(web.fail == Fail::closed);

  for (const auto& [client, destination] : {std::pair{other, server}, std::pair{branch, other}}) {
    const FlowPolicy none = policy_for(config, global, client, destination, 80);
    CHECK_FALSE(none.rule);
    CHECK(none.features == global);
    CHECK(none.fail == Fail::closed);
  }
}

TEST_CASE("a rule without conditions matches everything, and a name matches no network") {
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
  CHECK(peer_for(config, std::nullopt) == nullptr);
  config.peers.resize(1);
  CHECK(peer_for(config, std::nullopt) == &config.peers[0]);
}
