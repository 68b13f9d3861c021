// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/command_line.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <vector>

#include "proxy/cli/describe.h"
#include "proxy/config/read.h"
#include "proxy/identity/keygen.h"
#include "proxy/temporary_folder.h"
#include "tests/proxy/cli/typed.h"

using namespace longhaul;
using cli::has;
using cli::Typed;

namespace {

Typed type(std::vector<std::string> words) {
  std::vector<const char*> pointers{"longhaul"};
  for (const std::string& word : words) pointers.push_back(word.c_str());
  std::ostringstream out, errors;
  const int exit_code = cli::run_command_line(pointers, out, errors);
  return {exit_code, out.str(), errors.str()};
}

}  // namespace

TEST_CASE("--version and --help succeed") {
  CHECK(type({"--version"}).exit_code == 0);
  CHECK(type({"--version"}).out.starts_with("longhaul "));
  CHECK(type({"--help"}).exit_code == 0);
  for (std::string_view command :
       {"run", "check", "keygen", "status", "flows", "why", "set", "clear-cache", "intercept", "fail-closed"})
    CHECK(has(type({"--help"}).out, command));
  CHECK(has(type({"keygen", "--help"}).out, "NAME"));
}

TEST_CASE("--help fits a hundred columns") {
  std::vector<std::vector<std::string>> all{{"--help"}};
  for (const char* command : {"run", "check", "keygen", "keytab", "init", "status", "flows", "top", "why", "set", "clear-cache", "reload",
                              "intercept", "fail-closed", "page", "support"})
    all.push_back({command, "--help"});
  for (const auto& words : all) {
    const Typed typed = type(words);
    CAPTURE(words[0]);
    REQUIRE(typed.exit_code == 0);
    std::istringstream lines(typed.out);
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      CHECK(line.size() <= 100);
    }
  }
}

TEST_CASE("wrong usage gives exit code 2 and a sentence") {
  CHECK(type({}).exit_code == 2);
  CHECK(type({"chekc", "a.toml"}).exit_code == 2);
  CHECK(type({"chekc", "a.toml"}).errors == "Unknown command \"chekc\". Did you mean check?\n");
  CHECK(type({"--verson"}).exit_code == 2);
  CHECK(type({"check"}).exit_code == 2);
  CHECK(has(type({"check"}).errors, "FILE is required"));
  CHECK(type({"check", "a", "b"}).exit_code == 2);
  CHECK(type({"keygen"}).exit_code == 2);
  // Options that would have no effect beside others.
  CHECK(has(type({"flows", "--count", "2"}).errors, "--count requires --watch"));
  CHECK(has(type({"status", "--config", "a.toml", "--control", "127.0.0.1:1"}).errors, "excludes"));
}

TEST_CASE("check and run refuse a bad configuration with one sentence and exit code 2") {
  const TemporaryFolder folder;
  folder.write("a.toml", "site = \"a\"\n[sockz]\nlisten = \"127.0.0.1:1080\"\n");
  for (std::string command : {"check", "run"}) {
    const Typed typed = type({command, (folder.path() / "a.toml").string()});
    CHECK(typed.exit_code == 2);
    CHECK(typed.out.empty());
    CHECK(typed.errors ==
          (folder.path() / "a.toml").string() + ":2: the file has no key \"sockz\". Did you mean socks?\n");
    CHECK(type({command, (folder.path() / "none.toml").string()}).exit_code == 2);
  }
}

TEST_CASE("keygen prints only the fingerprint, and never overwrites a key") {
  const TemporaryFolder folder;
  const Typed made = type({"keygen", "branch", "--dir", folder.path().string()});
  CHECK(made.exit_code == 0);
  CHECK(made.out.size() == 7 + 64 + 1);
  CHECK(made.out.starts_with("sha256:"));
  CHECK(has(made.errors, (folder.path() / "branch.key").string()));
  const Typed again = type({"keygen", "branch", "--dir", folder.path().string()});
  CHECK(again.exit_code == 1);
  CHECK(again.out.empty());
  CHECK(has(again.errors, "not overwritten"));
}

TEST_CASE("check accepts the examples once their keys are made") {
  const std::string of = GENERATE("", "two-lines/");
  const TemporaryFolder folder;
  for (std::string site : {"branch", "datacenter"}) {
    std::filesystem::copy_file(
        std::filesystem::path(LONGHAUL_SOURCE_DIR) / "examples" / (of + site + ".toml"),
        folder.path() / (site + ".toml"));
    const std::string file = (folder.path() / (site + ".toml")).string();
    const Typed before = type({"check", file});
    CHECK(before.exit_code == 2);
    CHECK(has(before.errors, "`longhaul keygen " + site + "` creates " + site));
    const auto made = identity::keygen(site, folder.path());
    const Typed typed = type({"check", "--file-only", file});
    CHECK(typed.exit_code == 0);
    INFO(typed.errors);
    const std::string said = cli::unwrapped(typed.out);
    CHECK(said.starts_with(file + " is a valid configuration of the site \"" + site + "\".\n"));
    CHECK(has(said, made.fingerprint));
    CHECK(has(said, "mpls, to 10.10.100.2:7600, from 10.10.100.1, rate at most ") ==
          (!of.empty() && site == "branch"));
    // All that is left to do is to pin the peer.
    CHECK(config::warnings(config::read(file)).size() == 1);
    CHECK(has(said, "still has the placeholder fingerprint of the examples"));
  }
}

TEST_CASE("check detects a peer with this site's own key") {
  const TemporaryFolder folder;
  const auto made = identity::keygen("a", folder.path());
  folder.write(
      "a.toml",
      "site = \"a\"\n[identity]\ncertificate = \"a.crt\"\nprivate_key = \"a.key\"\n[[peer]]\nname = \"b\"\n"
      "address = \"b:7600\"\nfingerprint = \"" +
          made.fingerprint + "\"\n");
  const Typed typed = type({"check", (folder.path() / "a.toml").string()});
  CHECK(typed.exit_code == 2);
  CHECK(has(typed.errors, "has the fingerprint of this site's own key"));
}

TEST_CASE("check describes a configuration in sentences") {
  const auto config = config::read_text(R"(
site = "branch"
state_dir = "/s"
[identity]
certificate = "a.crt"
private_key = "a.key"
[link]
listen = "[::]:7600"
total_rate = "100mbit"
[[peer]]
name = "datacenter"
address = "10.10.100.2:7600"
fingerprint = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
networks = ["10.10.2.0/24"]
rate = "1.544mbit"
[intercept]
mode = "tproxy"
interfaces = ["lan0", "lan1"]
source = "proxy"
fail = "closed"
[[forward]]
listen = "127.0.0.1:8445"
to = "files:445"
[features]
preset = "B"
[[rule]]
to_ports = [445, 139]
from_networks = ["10.10.1.0/24"]
features = { fec = "off" }
fail = "open"
[[rule]]
[dictionary]
memory = "64MiB"
disk = "1GiB"
directory = "d"
)",
                                        "a.toml");
  CHECK(cli::describe(config, "sha256:x") == R"(a.toml is a valid configuration of the site "branch".
Its peers must configure the fingerprint sha256:x.
Flows that enter here:
  New TCP connections that come in on lan0, lan1 are intercepted (IPv4 and IPv6, TPROXY port 7650).
  The server sees the far proxy's address.
  Connections to 127.0.0.1:8445 go to files:445.
  While the link is down they are refused (fail = closed).
Closed (fail = closed): TCP flows, forwarded by this host or relayed by the daemon, that must use the link:
  Rule 1 opens the flows for which it is the first match.
  All other flows between this site and the peers' networks are closed: 10.10.2.0/24.
  The table inet longhaul_closed_7650 enforces it, whether or not the daemon runs. To remove it:
    longhaul fail-closed remove a.toml
Link:
  Peers can connect to [::]:7600.
  The peer "datacenter" is connected to at 10.10.100.2:7600 and must present the key sha256:0000000000000000000000000000000000000000000000000000000000000000.
    Networks of its site: 10.10.2.0/24.
    Rate towards it: at most 1.544mbit.
  Rate towards all peers together: at most 100mbit.
  TCP congestion control towards peers: bbr.
  For peers, this site connects to nothing.
Features:
  transport=off window=auto fast_connect=false compression=false dedup_memory=false dedup_disk=false fec=off paths=auto smb=false smb.read_ahead=false smb.write_behind=false smb.write_behind_cached=false smb.metadata=false tls=false tls.connect_ahead=false http=false http.prefetch=false http.connect_ahead=false
Application modules:
  smb: flows to port 445, 139.
  tls: flows to port 443.
  http: flows to port 80, 8080.
Rules (the first match applies):
  1. Flows to port 445, 139 from 10.10.1.0/24: fec=off; while the link is down they go straight to the server (fail = open).
  2. Flows (all): the features above.
Dictionary:
  In memory: at most 148MiB for all peers and both directions, allocated as it fills; on disk: 1GiB in /s/d.
  On disk, each peer can use only the data of its own link.
Control:
  The API listens on 127.0.0.1:7601; requests that change something need the token in /s/control.token.
Limits:
  16384 flows, 4096 per client address, 1000 new ones per second and address, 256 TLS handshakes in progress.
Memory:
  At most 2GiB in all: 465MiB of receive credit, 465MiB sent and unacknowledged, 310MiB in modules, 256MiB read ahead, 148MiB in memory dictionaries, 148MiB for the index and queue of the disk dictionary, 256MiB in reserve.
Process:
  When started as root, the daemon switches to the user longhaul and keeps net_admin and net_bind_service; access to system calls and files that it does not need is blocked.
Log:
  info and more severe, as key=value lines on standard error.
)");
}
