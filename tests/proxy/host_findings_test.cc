// SPDX-License-Identifier: Apache-2.0
#include "proxy/host_findings.h"

#include <catch2/catch.hpp>

#include "proxy/config/read.h"

using namespace longhaul;

namespace {

net::Interface interface(const std::string& name, const std::string& address, const std::string& network) {
  return {.name = name,
          .addresses = {*config::parse_address(address)},
          .networks = {*config::parse_network(network)}};
}

HostFacts host() {
  return {.interfaces = {interface("lan0", "10.10.1.1", "10.10.1.0/24"),
                         interface("wan0", "10.10.100.1", "10.10.100.0/24"),
                         interface("lan0", "fd10:1::1", "fd10:1::/64")},
          .towards_peers = {"wan0"},
          .memory_bytes = 8ull << 30,
          .disk_bytes = 100ull << 30};
}

HostFindings look(const std::string& more, const HostFacts& facts = host(), const std::string& peer = "",
                  const std::string& address = "10.10.100.2:7600") {
  const std::string text = "site = \"a\"\n[identity]\ncertificate = \"a.crt\"\nprivate_key = \"a.key\"\n" +
                           more + "[[peer]]\nname = \"b\"\naddress = \"" + address +
                           "\"\nfingerprint = \"sha256:" + std::string(64, 'a') + "\"\n" + peer;
  HostFacts all = facts;
  if (all.addresses_of_peers.empty()) all.addresses_of_peers = {config::parse_address(address.substr(0, address.rfind(':')))};
  return host_findings(config::read_text(text, "a.toml"), all);
}

bool warns(const HostFindings& found, const std::string& of) {
  CHECK(found.errors.empty());
  return found.warnings.size() == 1 && found.warnings[0].find(of) != std::string::npos;
}

}  // namespace

TEST_CASE("a configuration that fits its host gives no finding") {
  const auto found =
      look("[link]\nlisten = \"10.10.100.1:7600\"\n[intercept]\nmode = \"tproxy\"\ninterfaces = [\"lan0\"]\n",
           host(), "networks = [\"10.10.2.0/24\", \"10.10.0.0/16\", \"0.0.0.0/0\"]\n");
  CHECK(found.errors.empty());
  CHECK(found.warnings.empty());
}

TEST_CASE("a listen address that no interface has is an error") {
  CHECK(look("[link]\nlisten = \"10.9.9.9:7600\"\n").errors.size() == 1);
  CHECK(look("[socks]\nlisten = \"[fd00::9]:1080\"\n").errors.size() == 1);
  for (const std::string good : {"0.0.0.0:7600", "[::]:7600", "127.0.0.5:7600", "[fd10:1::1]:7600"})
    CHECK(look("[link]\nlisten = \"" + good + "\"\n").errors.empty());
  HostFacts floating = host();
  floating.binds_foreign = true;
  const std::string page = "tls_certificate = \"c\"\ntls_key = \"k\"\n";
  CHECK(look("[control]\ntls_listen = \"10.9.9.9:7602\"\n" + page).errors.size() == 1);
  CHECK(look("[control]\ntls_listen = \"10.10.1.1:7602\"\n" + page).errors.empty());
  CHECK(look("[link]\nlisten = \"10.9.9.9:7600\"\n", floating).errors.empty());
}

TEST_CASE("the interface that leads to the peer must not be intercepted") {
  const std::string intercept = "[intercept]\nmode = \"tproxy\"\ninterfaces = [\"lan0\", \"wan0\"]\n";
  CHECK(warns(look(intercept), "leads through wan0"));
  HostFacts unknown = host();
  unknown.towards_peers = {""};
  CHECK(look(intercept, unknown).warnings.empty());
}

TEST_CASE("a peer with this host's address or networks is an error") {
  CHECK(warns(look("", host(), "", "10.10.100.1:7600"), "this host's own (wan0)"));
  CHECK(warns(look("", host(), "networks = [\"10.10.1.0/24\"]\n"), "interface lan0"));
  CHECK(warns(look("", host(), "networks = [\"fd10:1::7\"]\n"), "interface lan0"));
}

TEST_CASE("a peer that is named is looked at by the address of its name") {
  HostFacts facts = host();
  facts.addresses_of_peers = {config::parse_address("10.10.100.1")};
  CHECK(warns(look("", facts, "", "dc.example.com:7600"), "this host's own (wan0)"));
  facts.addresses_of_peers = {std::nullopt};
  CHECK(look("", facts, "", "dc.example.com:7600").warnings.empty());
  const auto named = [](const std::string& name) {
    return config::read_text("site = \"a\"\n[identity]\ncertificate = \"a.crt\"\nprivate_key = \"a.key\"\n[[peer]]\nname = \"b\"\naddress = \"" +
                                 name + ":7600\"\nfingerprint = \"sha256:" + std::string(64, 'a') + "\"\n",
                             "a.toml");
  };
  const auto found = host_facts(named("localhost"));
  REQUIRE(found.addresses_of_peers.size() == 1);
  REQUIRE(found.addresses_of_peers[0]);
  CHECK(found.addresses_of_peers[0]->is_loopback());
  CHECK(found.towards_peers == std::vector<std::string>{"lo"});
}

TEST_CASE("a network cannot be at this site and behind its only peer") {
  CHECK(warns(look("[link]\nlisten = \"[::]:7600\"\nallow = [\"10.7.0.0/16\"]\n", host(), "networks = [\"10.7.0.0/16\"]\n"),
              "10.7.0.0/16 is in [link] allow"));
  CHECK(look("[link]\nlisten = \"[::]:7600\"\nallow = [\"10.7.0.0/16\"]\n", host(), "networks = [\"0.0.0.0/0\"]\n").warnings.empty());
}

TEST_CASE("a collector or syslog host that leads nowhere is named") {
  const auto config = [](const std::string& syslog) {
    return config::read_text("site = \"a\"\n[identity]\ncertificate = \"a.crt\"\nprivate_key = \"a.key\"\n[export]\n"
                             "ipfix = \"127.0.0.1:4739\"\notlp = \"http://nowhere.invalid:4318\"\n[log]\nsyslog = \"" + syslog + "\"\n",
                             "a.toml");
  };
  const auto missing = host_facts(config("unix:/nowhere/log")).missing_targets;
  REQUIRE(missing.size() == 2);
  CHECK(missing[0] == "[export] otlp: the name nowhere.invalid cannot be resolved");
  CHECK(missing[1] == "[log] syslog: there is no socket /nowhere/log");
  CHECK(host_facts(config("udp:127.0.0.1:514")).missing_targets.size() == 1);
  HostFacts facts = host();
  facts.missing_targets = missing;
  CHECK(look("", facts).warnings.size() >= 2);
}

TEST_CASE("dictionary and memory sizes are checked against the host") {
  CHECK(warns(look("[dictionary]\ndisk = \"1TiB\"\n"), "the dictionary would fill it"));
  CHECK(warns(look("[limits]\nmemory = \"16GiB\"\n"), "has only 8GiB"));
}
