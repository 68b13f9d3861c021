// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/read.h"

#include <catch2/catch.hpp>

#include "proxy/modules/modules.h"
#include "proxy/temporary_folder.h"
#include "tests/proxy/config/texts.h"

using namespace longhaul::config;
using namespace longhaul::config::test;

TEST_CASE("the smallest configuration has the documented defaults") {
  const Config config =
      read_text("site = \"branch\"\n" + kIdentity + "[socks]\nlisten = \"127.0.0.1:1080\"\n", "dir/a.toml");
  CHECK(config.site == "branch");
  CHECK(config.file == "dir/a.toml");
  CHECK(config.state_dir == "/var/lib/longhaul");
  CHECK(config.socks.listen == HostPort{"127.0.0.1", 1080});
  CHECK(config.control.listen == HostPort{"127.0.0.1", 7601});
  CHECK(config.features == standard_features(longhaul::modules::feature_table()));
  REQUIRE(config.modules.size() == 3);
  CHECK(config.modules[0] == ModuleSettings{.name = "smb", .ports = {445, 139}});
  CHECK(config.modules[1] == ModuleSettings{.name = "tls", .ports = {443}});
  CHECK(config.modules[2] == ModuleSettings{.name = "http", .ports = {80, 8080}});
  CHECK(config.intercept.fail == Fail::open);
  CHECK(config.limits.memory_bytes == 2ull << 30);
  CHECK(config.dictionary.memory_bytes == 256ull << 20);
  CHECK(config.dictionary.disk_bytes == 10ull << 30);
  CHECK(config.dictionary.directory == "dictionary");
  CHECK(config.dictionary.share.empty());
  CHECK(config.log.level == "info");
}

TEST_CASE("the flows that a module is offered can be changed") {
  const std::string head = "site = \"branch\"\n" + kIdentity + "[socks]\nlisten = \"127.0.0.1:1080\"\n";
  const Config config = read_text(head + "[smb]\nports = [1445, 445]\nany_port = true\n", "a.toml");
  REQUIRE(config.modules.size() == 3);
  CHECK(config.modules[0] == ModuleSettings{.name = "smb", .ports = {1445, 445}, .any_port = true});
  CHECK(read_text(head + "[smb]\nports = []\n", "a.toml").modules[0].ports.empty());
}

TEST_CASE("a table of TLS servers has names, clients and files") {
  const Config config = read_text(
      "site = \"branch\"\n" + kIdentity + "[link]\nlisten = \"[::]:7600\"\nallow = [\"10.10.2.0/24\"]\n[[tls_server]]\n"
      "addresses = [\"10.10.2.2\"]\nnames = [\"a.corp\", \"*.b.corp\"]\nclients = [\"10.10.1.0/24\"]\n"
      "certificate = \"a.crt\"\nkey = \"a.key\"\nmode = \"mint\"\n", "dir/a.toml");
  REQUIRE(config.servers.size() == 1);
  const ServerTable& table = config.servers[0];
  CHECK(table.name == "tls_server");
  CHECK(table.names == std::vector<NamePattern>{{.name = "a.corp"}, {.name = "b.corp", .subdomains = true}});
  CHECK(table.clients.size() == 1);
  CHECK(table.files == std::vector<std::pair<std::string, std::filesystem::path>>{{"key", "dir/a.key"}});
  CHECK(table.public_files == std::vector<std::pair<std::string, std::filesystem::path>>{{"certificate", "dir/a.crt"}});
  CHECK(table.chosen == std::vector<std::pair<std::string, std::string>>{{"mode", "mint"}});
}

TEST_CASE("a full configuration is read key by key") {
  const Config config = read_text(R"(
site = "branch"
state_dir = "state"

[identity]
certificate = "branch.crt"
private_key = "/etc/longhaul/branch.key"

[link]
listen = "[::]:7600"
allow = ["10.10.1.0/24", "fd00:1::/64", "10.10.1.7"]
total_rate = "100mbit"
congestion_control = "cubic"

[[peer]]
name = "datacenter"
address = "[fd00:100::2]:7600"
)" + kFingerprint + R"(
networks = ["10.10.2.0/24", "fd00:2::/64"]
names = ["*.Corp", "files.example"]
rate = "51.84mbit"
dictionary_memory = "1GiB"
groups = ["labs"]

[[peer]]
name = "second"
address = "second.example:7600"
fingerprint = ["SHA256:BBbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
               "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"]

[intercept]
mode = "tproxy"
interfaces = ["lan0", "lan0.12"]
port = 7651
source = "client"
fail = "closed"

[[forward]]
listen = "127.0.0.1:8445"
to = "10.10.2.2:445"

[[forward]]
listen = "[::1]:8445"
to = "files.example:445"

[socks]
listen = "127.0.0.1:1080"

[features]
fec = "10:2"
preset = "T"
window = 65535
smb = true
"smb.read_ahead" = true
dedup_disk = "off"

[[rule]]
to_ports = [445, 139]
to_networks = ["10.10.2.0/24"]
from_networks = ["10.10.1.0/24"]
features = { compression = false, preset = "A" }
fail = "open"

[[rule]]

[control]
listen = "[::1]:7602"
token_file = "/run/token"

[dictionary]
memory = 0
disk = "64MiB"
directory = "/var/cache/longhaul"
share = ["branches", "labs"]

[limits]
flows = 100
flows_per_source = 20
new_flows_per_source = 500
handshakes = 5
memory = "64MiB"

[log]
level = "debug"
json = true
)",
                                  "dir/a.toml");
  CHECK(config.state_dir == "dir/state");
  CHECK(config.identity.certificate == "dir/branch.crt");
  CHECK(config.identity.private_key == "/etc/longhaul/branch.key");
  CHECK(config.link.listen == HostPort{"::", 7600});
  REQUIRE(config.link.allow.size() == 3);
  CHECK(to_text(config.link.allow[2]) == "10.10.1.7/32");
  CHECK(config.link.total_rate_bits == 100'000'000);
  CHECK(config.link.congestion_control == "cubic");
  REQUIRE(config.peers.size() == 2);
  CHECK(config.peers[0].name == "datacenter");
  CHECK(config.peers[0].address == HostPort{"fd00:100::2", 7600});
  CHECK(config.peers[0].fingerprints == std::vector{"sha256:" + kHex});
  CHECK(config.peers[0].networks.size() == 2);
  REQUIRE(config.peers[0].names.size() == 2);
  CHECK(config.peers[0].names[0].to_text() == "*.corp");
  CHECK(config.peers[0].rate_bits == 51'840'000);
  CHECK(config.peers[1].address == HostPort{"second.example", 7600});
  CHECK(config.peers[1].fingerprints ==
        std::vector{"sha256:" + std::string(64, 'b'), "sha256:" + std::string(64, 'c')});
  CHECK(config.intercept.mode == Intercept::Mode::tproxy);
  CHECK(config.intercept.interfaces == std::vector<std::string>{"lan0", "lan0.12"});
  CHECK(config.intercept.port == 7651);
  CHECK(config.intercept.source == Source::client);
  CHECK(config.intercept.fail == Fail::closed);
  REQUIRE(config.forwards.size() == 2);
  CHECK(config.forwards[1].to == HostPort{"files.example", 445});
  Features wanted = preset("T", longhaul::modules::feature_table()).value();  // whatever the order in the file, the preset comes first
  wanted.fec = {Fec::Mode::fixed, 10, 2};
  wanted.window_bytes = 65535;
  wanted.modules.set("smb", 1);
  wanted.modules.set("smb.read_ahead", 1);
  wanted.dedup_disk = false;
  CHECK(config.features == wanted);
  REQUIRE(config.rules.size() == 2);
  CHECK(config.rules[0].to_ports == std::vector<std::uint16_t>{445, 139});
  CHECK(config.rules[0].features ==
        std::vector<std::pair<std::string, std::string>>{{"preset", "A"}, {"compression", "false"}});
  CHECK(config.rules[0].fail == Fail::open);
  CHECK_FALSE(config.rules[1].fail);
  CHECK(config.control.listen == HostPort{"::1", 7602});
  CHECK(config.control.token_file == "/run/token");
  CHECK(config.peers[0].dictionary_memory_bytes == 1ull << 30);
  CHECK_FALSE(config.peers[1].dictionary_memory_bytes);
  CHECK(config.dictionary.memory_bytes == 0);
  CHECK(config.dictionary.disk_bytes == 64ull << 20);
  CHECK(config.dictionary.directory == "/var/cache/longhaul");
  CHECK(config.dictionary.share == std::vector<std::string>{"branches", "labs"});
  CHECK(config.peers[0].groups == std::vector<std::string>{"labs"});
  CHECK(config.peers[1].groups.empty());
  CHECK(config.limits.flows == 100);
  CHECK(config.limits.flows_of_one_source() == 20);
  CHECK(config.limits.new_flows_per_source == 500);
  CHECK(config.limits.handshakes == 5);
  CHECK(config.limits.memory_bytes == 64u << 20);
  CHECK(config.log.level == "debug");
  CHECK(config.log.json);
}

namespace {

std::string file_sentence(const std::filesystem::path& file) {
  try {
    (void)read(file);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("an unreadable file or a missing certificate is reported with its name") {
  const longhaul::TemporaryFolder folder;
  const std::string at = folder.path().string();
  CHECK(file_sentence(folder.path() / "none.toml") ==
        at + "/none.toml: the configuration cannot be read: No such file or directory.");
  CHECK(file_sentence(folder.path()) == at + ": the configuration cannot be read: it is a directory.");
  folder.write("a.toml", "site = \"a\"\n" + kIdentity);
  CHECK(file_sentence(folder.path() / "a.toml") ==
        at + "/a.toml:3: [identity] certificate = \"a.crt\": the file " + at +
            "/a.crt does not exist; `longhaul keygen a` creates a.crt.");
  folder.write("b.toml", "site = \"b\"\n[identity]\ncertificate = \"bb.crt\"\nprivate_key = \"b.key\"\n");
  folder.write("b.crt", "");
  CHECK(file_sentence(folder.path() / "b.toml").ends_with("/bb.crt does not exist; its directory has b.crt."));
  folder.write("a.crt", "");
  CHECK(file_sentence(folder.path() / "a.toml").starts_with(at + "/a.toml:4: [identity] private_key"));
  folder.write("a.key", "");
  CHECK(file_sentence(folder.path() / "a.toml") == "accepted");
  folder.write("large.toml", std::string((1 << 20) + 1, '#'));
  CHECK(file_sentence(folder.path() / "large.toml") ==
        at + "/large.toml: the file is larger than 1 MiB, so it is not a longhaul configuration.");
}

TEST_CASE("valid settings that are probably mistakes cause a warning") {
  const auto of = [](const std::string& text) { return warnings(read_text(text, "a.toml")); };
  CHECK(of(after_head("")) ==
        std::vector<std::string>{
            "There is no [intercept], [[forward]], [socks] or [link] listen, so this daemon would do nothing."});
  CHECK(of(after_head("[socks]\nlisten = \"127.0.0.1:1\"\n")) ==
        std::vector<std::string>{"There is no [[peer]], so all flows bypass the link."});
  const auto rules = [&](const std::string& text) {
    return of(
        after_head("[socks]\nlisten = \"127.0.0.1:1\"\n[[peer]]\nname = \"b\"\naddress = \"b:1\"\nnetworks = "
                   "[\"10.0.0.0/8\"]\n" +
                   kFingerprint + text));
  };
  CHECK(rules("").empty());
  CHECK(rules("[[rule]]\nto_ports = [1, 2]\n[[rule]]\nto_ports = [2]\nto_networks = [\"10.0.0.0/8\"]\n") ==
        std::vector<std::string>{"Rule 2 is never used: rule 1 matches all of its flows first."});
  CHECK(
      rules("[[rule]]\nto_networks = [\"10.0.0.0/9\"]\n[[rule]]\nto_networks = [\"10.0.0.0/8\"]\n").empty());
  CHECK(rules("[[rule]]\nto_ports = [1]\n[[rule]]\n").empty());
  const auto forward = [&](std::string to) {
    return rules("[[forward]]\nlisten = \"[::1]:1\"\nto = \"" + to + "\"\n");
  };
  CHECK(forward("10.1.1.1:1").empty());
  CHECK(forward("files:1").empty());
  CHECK(
      forward("11.1.1.1:1") ==
      std::vector<std::string>{"The forward to 11.1.1.1:1 bypasses the link: no peer's networks contain it."});
}

TEST_CASE("a warning names keys that have no effect in this file") {
  const auto of = [](const std::string& text) {
    return warnings(read_text(after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\nnetworks = [\"10.0.0.0/8\"]\nnames = [\"*.corp\"]\n" +
                                         std::string(kFingerprint) + text),
                              "a.toml"));
  };
  const std::string tproxy = "[intercept]\nmode = \"tproxy\"\ninterfaces = [\"lan0\"]\n";
  CHECK(of(tproxy) == std::vector<std::string>{"The key names of the peer \"b\" has no effect without [socks] or a [[forward]] "
                                               "to a name, through which clients name their servers."});
  CHECK(of("[socks]\nlisten = \"127.0.0.1:1\"\n").empty());
  CHECK(of("[[forward]]\nlisten = \"127.0.0.1:1\"\nto = \"files.corp:445\"\n").empty());
  CHECK(of("[socks]\nlisten = \"127.0.0.1:1\"\n[limits]\nhandshakes = 5\nnew_flows_per_source = 7\n") ==
        std::vector<std::string>{"[limits] handshakes has no effect without [link] listen.",
                                 "[limits] new_flows_per_source has no effect without [intercept] mode = \"tproxy\"."});
  CHECK(of("[socks]\nlisten = \"127.0.0.1:1\"\n[link]\nlisten = \"0.0.0.0:7600\"\n[limits]\nhandshakes = 5\n" + tproxy).empty());
  CHECK(of("[socks]\nlisten = \"127.0.0.1:1\"\n[intercept]\ninterfaces = [\"lan0\"]\nport = 7000\n") ==
        std::vector<std::string>{"[intercept] interfaces has no effect without mode = \"tproxy\".",
                                 "[intercept] port has no effect without mode = \"tproxy\"."});
}

TEST_CASE("a warning names features that another setting keeps from having an effect") {
  const auto of = [](const std::string& text) {
    return warnings(read_text(after_head("[socks]\nlisten = \"127.0.0.1:1\"\n[[peer]]\nname = \"b\"\naddress = \"b:1\"\n"
                                         "networks = [\"10.0.0.0/8\"]\n" + std::string(kFingerprint) + text),
                              "a.toml"));
  };
  using Lines = std::vector<std::string>;
  CHECK(of("[features]\ndedup_memory = false\ndedup_disk = true\n") ==
        Lines{"[features] dedup_disk has no effect while dedup_memory is false."});
  CHECK(of("[features]\ndedup_disk = true\n[dictionary]\ndisk = 0\n") ==
        Lines{"[features] dedup_disk has no effect while [dictionary] disk is 0."});
  CHECK(of("[features]\ndedup_memory = true\n[dictionary]\nmemory = 0\n") ==
        Lines{"[features] dedup_memory has no effect while [dictionary] memory is 0."});
  CHECK(of("[features]\nsmb = false\n\"smb.read_ahead\" = true\n\"smb.metadata\" = false\n") ==
        Lines{"[features] smb.read_ahead has no effect while smb is off."});
  CHECK(of("[[rule]]\nto_ports = [445]\nfeatures = { preset = \"T\", \"smb.write_behind\" = true }\n") ==
        Lines{"In rule 1, smb.write_behind has no effect while smb is off."});
  CHECK(of("[features]\ntransport = \"tcp\"\nfec = \"4:1\"\n") == Lines{"[features] fec has no effect while transport is tcp."});
  CHECK(of("[features]\ntransport = \"off\"\nfec = \"4:1\"\nwindow = \"64KiB\"\ncompression = false\n") ==
        Lines{"[features] window has no effect while transport is off.", "[features] fec has no effect while transport is off."});
  CHECK(of("[smb]\nports = []\n") ==
        Lines{"[smb] ports is empty, so smb in [features] has no effect; to switch the module off, set smb = false there."});
  CHECK(of("[smb]\nports = []\n[features]\nsmb = false\n").empty());
  CHECK(of("[smb]\nports = []\nany_port = true\n").empty());
  CHECK(of("[features]\ndedup_disk = true\n\"smb.read_ahead\" = true\ndedup_memory = true\n").empty());
  CHECK(of("[features]\nsmb = false\n[[rule]]\nto_ports = [445]\nfeatures = { smb = true, \"smb.read_ahead\" = true }\n").empty());
}

TEST_CASE("a warning names what fail = closed always refuses, and which address family it does not cover") {
  const auto of = [](const std::string& networks, const std::string& text) {
    return warnings(read_text(after_head("[socks]\nlisten = \"127.0.0.1:1\"\n[[peer]]\nname = \"b\"\naddress = \"b:1\"\n"
                                         "networks = [" + networks + "]\n" + kFingerprint + text),
                              "a.toml"));
  };
  using List = std::vector<std::string>;
  const std::string closed = "[intercept]\nfail = \"closed\"\n";
  CHECK(of(R"("10.0.0.0/8", "fd00::/8")", closed) == List{});
  CHECK(of(R"("10.0.0.0/8")", closed) ==
        List{"The peer \"b\" has no IPv6 network, so fail = \"closed\" does not cover IPv6 traffic to its site: if the "
             "site has such networks, add them."});
  CHECK(of(R"("10.0.0.0/8", "fd00::/8")", closed + "[features]\ntransport = \"off\"\n").size() == 1);
  const std::string off = "[[rule]]\nto_ports = [80]\nfeatures = { transport = \"off\" }\n";
  CHECK(of(R"("10.0.0.0/8", "fd00::/8")", closed + off) ==
        List{"Rule 1 sets transport to \"off\", but fail = \"closed\" requires the link, so its flows are refused. Add "
             "fail = \"open\" to the rule to let them bypass the link."});
  CHECK(of(R"("10.0.0.0/8", "fd00::/8")", closed + off + "fail = \"open\"\n") == List{});
  CHECK(of(R"("10.0.0.0/8", "fd00::/8")", off) == List{});
}

TEST_CASE("a peer's paths are read with their order, and the first address is the peer's") {
  const Config config = read_text(
      "site = \"a\"\n" + kIdentity + "[[peer]]\nname = \"b\"\n" + kFingerprint +
          "policy = \"failover\"\n"
          "[[peer.path]]\nname = \"mpls\"\naddress = \"10.10.100.2:7600\"\nlocal = \"10.10.100.1\"\nrate = "
          "\"10mbit\"\n"
          "[[peer.path]]\nname = \"internet\"\naddress = \"far.example:7600\"\nlocal = \"wan1\"\ncost = 2\n",
      "a.toml");
  REQUIRE(config.peers.size() == 1);
  const Peer& peer = config.peers[0];
  CHECK(peer.policy == PathPolicy::failover);
  CHECK(peer.address == HostPort{"10.10.100.2", 7600});
  CHECK(peer.rate_bits == 0);
  CHECK(peer.paths ==
        std::vector<PeerPath>{
            {.name = "mpls",
             .address = HostPort{"10.10.100.2", 7600},
             .local = "10.10.100.1",
             .rate_bits = 10'000'000},
            {.name = "internet", .address = HostPort{"far.example", 7600}, .local = "wan1", .cost = 2}});
  CHECK(peer.addresses() == std::vector<HostPort>{{"10.10.100.2", 7600}, {"far.example", 7600}});
}

TEST_CASE("paths to a peer that connects to this site have no address") {
  const Config config =
      read_text("site = \"a\"\n" + kIdentity + "[link]\nlisten = \"[::]:7600\"\n[[peer]]\nname = \"b\"\n" +
                    kFingerprint + "[[peer.path]]\nname = \"mpls\"\nrate = \"20mbit\"\n",
                "a.toml");
  REQUIRE(config.peers[0].paths.size() == 1);
  CHECK(config.peers[0].policy == PathPolicy::sum);
  CHECK_FALSE(config.peers[0].address);
}
