// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/host_checks.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "proxy/intercept/closed_rules.h"
#include "proxy/intercept/nft_rules.h"
#include "proxy/intercept/nft_table.h"
#include "proxy/net/accept_loop.h"
#include "proxy/process/privileges.h"

namespace longhaul::intercept {

namespace fs = std::filesystem;
using Weight = Finding::Weight;

namespace {

std::string value_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string value;
  stream >> value;
  return value;
}

// A table under another name, added and deleted in one transaction, so that no packet passes through it.
std::string tried_and_removed(std::string text, const std::string& name) {
  const std::string other = "longhaul_probe_" + std::to_string(::getpid());
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + other.size()))
    text.replace(at, name.size(), other);
  return text + "delete table inet " + other + "\n";
}

// The kernel rejects a rule without its module; trying it is the only reliable test.
void probe_nftables(const config::Config& config, std::vector<Finding>& findings) {
  NftTable table;
  const RuleSet taking{.interfaces = {"lo"}, .port = 7650, .peers = {}, .fast_connect = false};
  if (const auto done = table.run(tried_and_removed(table_text(taking), table_name(taking))); !done)
    findings.push_back(
        {Weight::blocks,
         "The kernel rejects the packet rules of transparent mode: " + done.error().message + ".",
         "modprobe -a nf_tables nft_tproxy nft_socket nft_fib_inet"});
  const auto closing = closed_rules(config);
  if (!closing || !closing->close_something()) return;  // an invalid name is reported below
  const auto done =
      table.run(tried_and_removed(closed_table_text(*closing), closed_table_name(closing->port)));
  if (!done)
    findings.push_back(
        {Weight::blocks,
         "The kernel rejects the packet rules of fail = \"closed\": " + done.error().message + ".",
         "modprobe -a nf_tables nft_reject_inet"});
}

}  // namespace

std::vector<Finding> interface_findings(const config::Intercept& intercept, const fs::path& root) {
  std::vector<Finding> findings;
  if (intercept.interfaces.empty())
    findings.push_back({Weight::blocks, "[intercept] interfaces is empty, so no flow would be intercepted.",
                        "list the interfaces towards the clients, for example interfaces = [\"lan0\"]"});
  for (const std::string& name : intercept.interfaces) {
    if (!is_interface_name(name) || !fs::exists(root / "sys/class/net" / name)) {
      findings.push_back({Weight::blocks,
                          "The interface \"" + name + "\" in [intercept] interfaces does not exist.",
                          "ip -brief link lists the interfaces"});
    } else if (value_of(root / "sys/class/net" / name / "operstate") == "down") {
      findings.push_back({Weight::warns, "The interface \"" + name + "\" in [intercept] interfaces is down.",
                          "ip link set " + name + " up"});
    }
  }
  if (value_of(root / "sys/class/net/lo/operstate") == "down")
    findings.push_back({Weight::blocks, "The interface lo is down, but intercepted packets pass through it.",
                        "ip link set lo up"});
  return findings;
}

std::vector<Finding> sysctl_findings(const config::Intercept& intercept, const fs::path& root) {
  std::vector<Finding> findings;
  const fs::path net = root / "proc/sys/net";
  // Only needed for traffic that is not intercepted: refused and older flows, and protocols other than TCP.
  if (value_of(net / "ipv4/ip_forward") == "0")
    findings.push_back(
        {Weight::warns,
         "This host does not forward IPv4 packets, so packets that it does not intercept are lost.",
         "sysctl -w net.ipv4.ip_forward=1, and that setting in /etc/sysctl.d for the next boot"});
  if (value_of(net / "ipv6/conf/all/forwarding") == "0" &&
      value_of(net / "ipv6/conf/all/disable_ipv6") == "0")
    findings.push_back(
        {Weight::warns,
         "This host does not forward IPv6 packets, so packets that it does not intercept are lost.",
         "sysctl -w net.ipv6.conf.all.forwarding=1, and that setting in /etc/sysctl.d for the next boot"});
  // A flood of SYNs fills the queue of half-open connections; without cookies no other client can connect
  // then.
  if (value_of(net / "ipv4/tcp_syncookies") == "0")
    findings.push_back({Weight::warns,
                        "SYN cookies are off, so a SYN flood from one host keeps all other clients from "
                        "connecting.",
                        "sysctl -w net.ipv4.tcp_syncookies=1"});
  const std::string somaxconn = value_of(net / "core/somaxconn");
  if (!somaxconn.empty() && std::atol(somaxconn.c_str()) < net::kBacklog)
    findings.push_back({Weight::warns,
                        "The accept queue of a listener holds only " + somaxconn +
                            " connections, so a burst of new flows can overflow it.",
                        "sysctl -w net.core.somaxconn=" + std::to_string(net::kBacklog)});
  // The larger of the two values applies (ip-sysctl).
  const std::string all = value_of(net / "ipv4/conf/all/rp_filter");
  for (const std::string& name : intercept.interfaces) {
    if (!is_interface_name(name)) continue;
    const std::string own = value_of(net / "ipv4/conf" / name / "rp_filter");
    if (std::max(all, own) != "1") continue;
    findings.push_back(
        {Weight::warns,
         "The reverse-path filter of " + name +
             " is strict, so packets are dropped if the route back to their source uses another interface.",
         "sysctl -w net.ipv4.conf." + name + ".rp_filter=2"});
  }
  return findings;
}

std::vector<Finding> host_findings(const config::Config& config) {
  const bool takes_flows = config.intercept.mode == config::Intercept::Mode::tproxy;
  const bool shows_clients =
      config.link.listen.has_value() && config.intercept.source != config::Source::proxy;
  std::vector<Finding> findings;
  if (!takes_flows && !shows_clients) return findings;
  if (!process::has_net_admin()) {
    if (takes_flows) {
      findings.push_back({Weight::blocks, "Transparent mode needs root or CAP_NET_ADMIN.",
                          "run as root, or set AmbientCapabilities=CAP_NET_ADMIN in the systemd unit"});
    } else {
      const bool only = config.intercept.source == config::Source::client;
      findings.push_back(
          {only ? Weight::blocks : Weight::warns,
           only ? "Connecting to servers with clients' addresses (source = \"client\") needs root or "
                  "CAP_NET_ADMIN."
                : "Without root or CAP_NET_ADMIN, servers see this proxy's address, not the client's.",
           "run as root, or set source = \"proxy\" in [intercept]"});
    }
  } else {
    probe_nftables(config, findings);
  }
  if (!takes_flows) return findings;
  for (auto& finding : interface_findings(config.intercept, "/")) findings.push_back(std::move(finding));
  for (auto& finding : sysctl_findings(config.intercept, "/")) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace longhaul::intercept
