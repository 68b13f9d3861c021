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

TEST_CASE("the version and the help are no errors") {
  CHECK(type({"--version"}).exit_code == 0);
  CHECK(type({"--version"}).out.starts_with("longhaul "));
  CHECK(type({"--help"}).exit_code == 0);
  for (std::string_view command :
       {"run", "check", "keygen", "status", "flows", "why", "set", "clear-cache", "intercept", "fail-closed"})
    CHECK(has(type({"--help"}).out, command));
  CHECK(has(type({"keygen", "--help"}).out, "NAME"));
}

TEST_CASE("bad usage is exit code 2 and a sentence") {
  CHECK(type({}).exit_code == 2);
  CHECK(type({"chekc", "a.toml"}).exit_code == 2);
  CHECK(type({"chekc", "a.toml"}).errors == "There is no command \"chekc\". Did you mean check?\n");
  CHECK(type({"--verson"}).exit_code == 2);
  CHECK(type({"check"}).exit_code == 2);
  CHECK(has(type({"check"}).errors, "FILE is required"));
  CHECK(type({"check", "a", "b"}).exit_code == 2);
  CHECK(type({"keygen"}).exit_code == 2);
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

TEST_CASE("keygen prints the fingerprint alone, and never overwrites") {
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
  const TemporaryFolder folder;
  for (std::string site : {"branch", "datacenter"}) {
    std::filesystem::copy_file(std::filesystem::path(LONGHAUL_SOURCE_DIR) / "examples" / (site + ".toml"),
                               folder.path() / (site + ".toml"));
    const std::string file = (folder.path() / (site + ".toml")).string();
    const Typed before = type({"check", file});
    CHECK(before.exit_code == 2);
    CHECK(has(before.errors, "`longhaul keygen " + site + "` makes it"));
    const auto made = identity::keygen(site, folder.path());
    const Typed typed = type({"check", "--file-only", file});
    CHECK(typed.exit_code == 0);
    INFO(typed.errors);
    CHECK(typed.out.starts_with(file + " is a configuration of the site \"" + site + "\".\n"));
    CHECK(has(typed.out, made.fingerprint));
    // All that is left to do is to pin the peer.
    CHECK(config::warnings(config::read(file)).size() == 1);
    CHECK(has(typed.out, "has the placeholder of the examples for a fingerprint"));
  }
}

TEST_CASE("check finds a peer that shows this site's own key") {
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

TEST_CASE("a configuration is described in sentences") {
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
  CHECK(cli::describe(config, "sha256:x") == R"(a.toml is a configuration of the site "branch".
Its peers must name the fingerprint sha256:x.
Flows that start here:
  New TCP connections that come in on lan0, lan1 are intercepted (IPv4 and IPv6, through port 7650).
  The server sees the far proxy's address.
  Connections to 127.0.0.1:8445 go to files:445.
  Without a link they are refused (fail = closed).
Closed (fail = closed), for TCP that this host forwards or the daemon relays:
  Rule 1 opens the flows that it matches first.
  All other flows between here and peers' networks are closed: 10.10.2.0/24.
  The table inet longhaul_closed_7650 enforces it, whether the daemon runs or not. It goes by:
    longhaul fail-closed remove a.toml
Link:
  Peers may dial [::]:7600.
  The peer "datacenter" is dialled at 10.10.100.2:7600 and must show sha256:0000000000000000000000000000000000000000000000000000000000000000.
    Behind it: 10.10.2.0/24.
    Sent to it: at most 1.544mbit.
  All peers together get at most 100mbit.
  TCP to peers uses the kernel's bbr.
  For peers, this site dials nothing.
Features:
  transport=off window=auto fast_connect=false compression=false dedup_memory=false dedup_disk=false fec=off smb=false smb.read_ahead=false smb.write_behind=false smb.write_behind_cached=false smb.metadata=false http=false mapi=false nfs=false dns=false
  In this version http, mapi, nfs and dns have no effect.
Rules; the first that matches a flow counts:
  1. Flows to port 445, 139 from 10.10.1.0/24: fec=off; without a link they go straight to the server (fail = open).
  2. Flows, all of them: features as above.
Dictionary:
  In memory at most 148MiB for all peers and both directions, taken as it fills; on disk 1GiB in /s/d.
  On disk each peer reads only what its own link carried.
Control:
  The API listens on 127.0.0.1:7601; changes need the token in /s/control.token.
Limits:
  16384 flows, 4096 of one client, of which 1000 are taken in a second, 256 handshakes at a time.
Memory:
  At most 2GiB in all: 465MiB of credit, 465MiB retained, 310MiB in modules, 256MiB ahead of clients, 148MiB in dictionaries, 148MiB for the one on disk, 256MiB in reserve.
Process:
  Started as root, it becomes the user longhaul and keeps net_admin and net_bind_service; system calls and files that it does not need are forbidden to it.
Log:
  info and worse, as key=value lines on standard error.
)");
}
