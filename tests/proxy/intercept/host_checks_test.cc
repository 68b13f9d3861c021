// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/host_checks.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "proxy/temporary_folder.h"

using namespace longhaul;
using namespace longhaul::intercept;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& file, const char* value) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << value << '\n';
}

// A machine that lacks nothing.
void make_host(const fs::path& root) {
  put(root / "sys/class/net/lo/operstate", "unknown");
  put(root / "sys/class/net/lan0/operstate", "up");
  const fs::path net = root / "proc/sys/net";
  put(net / "ipv4/ip_forward", "1");
  put(net / "ipv6/conf/all/forwarding", "1");
  put(net / "ipv6/conf/all/disable_ipv6", "0");
  put(net / "ipv4/conf/all/rp_filter", "0");
  put(net / "ipv4/conf/lan0/rp_filter", "0");
  put(net / "ipv4/tcp_syncookies", "1");
  put(net / "core/somaxconn", "4096");
}

const config::Intercept kLan0{.mode = config::Intercept::Mode::tproxy, .interfaces = {"lan0"}};

}  // namespace

TEST_CASE("a machine that meets all requirements gives no findings") {
  const TemporaryFolder root;
  make_host(root.path());
  CHECK(interface_findings(kLan0, root.path()).empty());
  CHECK(sysctl_findings(kLan0, root.path()).empty());
}

TEST_CASE("an interface that does not exist, is down or is not named is reported") {
  const TemporaryFolder root;
  make_host(root.path());
  config::Intercept intercept = kLan0;
  intercept.interfaces = {"lan7"};
  REQUIRE(interface_findings(intercept, root.path()).size() == 1);
  CHECK(interface_findings(intercept, root.path())[0].sentence ==
        "The interface \"lan7\" in [intercept] interfaces does not exist.");
  put(root.path() / "sys/class/net/lan0/operstate", "down");
  REQUIRE(interface_findings(kLan0, root.path()).size() == 1);
  CHECK(interface_findings(kLan0, root.path())[0].remedy == "ip link set lan0 up");
  intercept.interfaces.clear();
  CHECK(interface_findings(intercept, root.path())[0].weight == Finding::Weight::blocks);
}

TEST_CASE(
    "missing forwarding and a strict reverse-path filter are reported with the command that fixes them") {
  const TemporaryFolder root;
  make_host(root.path());
  const fs::path net = root.path() / "proc/sys/net";
  put(net / "ipv4/ip_forward", "0");
  put(net / "ipv6/conf/all/forwarding", "0");
  put(net / "ipv4/conf/all/rp_filter", "1");
  const auto findings = sysctl_findings(kLan0, root.path());
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].remedy.starts_with("sysctl -w net.ipv4.ip_forward=1, "));
  CHECK(findings[1].remedy.starts_with("sysctl -w net.ipv6.conf.all.forwarding=1, "));
  CHECK(findings[2].remedy == "sysctl -w net.ipv4.conf.lan0.rp_filter=2");
  put(net / "ipv4/conf/lan0/rp_filter", "2");  // the larger counts
  CHECK(sysctl_findings(kLan0, root.path()).size() == 2);
}

TEST_CASE("a host that a SYN flood would block is reported with the command that fixes it") {
  const TemporaryFolder root;
  make_host(root.path());
  const fs::path net = root.path() / "proc/sys/net";
  put(net / "ipv4/tcp_syncookies", "0");
  put(net / "core/somaxconn", "128");
  const auto findings = sysctl_findings(kLan0, root.path());
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].remedy == "sysctl -w net.ipv4.tcp_syncookies=1");
  CHECK(findings[1].remedy == "sysctl -w net.core.somaxconn=4096");
}

TEST_CASE("a site that neither intercepts flows nor dials for peers has no requirements") {
  CHECK(host_findings({}).empty());
}
