// SPDX-License-Identifier: Apache-2.0
// One function per part of the file, in the order in which a byte passes through them.
#include "proxy/cli/describe.h"

#include "proxy/config/sharing.h"
#include "proxy/config/units.h"
#include "proxy/intercept/closed_rules.h"
#include "proxy/memory_plan.h"

namespace longhaul::cli {
namespace {

using config::Config;
using config::Fail;

template <class List, class Print>
std::string join(const List& list, Print print, std::string_view between = ", ") {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) text += between;
    text += print(item);
  }
  return text;
}

std::string networks(const std::vector<config::Network>& list) {
  return join(list, [](const config::Network& network) { return config::to_text(network); });
}

std::string without_link(Fail fail) {
  return fail == Fail::open ? "go straight to the server (fail = open)" : "are refused (fail = closed)";
}

void flows_in(std::string& text, const Config& config) {
  const auto& intercept = config.intercept;
  text += "Flows that enter here:\n";
  if (intercept.mode == config::Intercept::Mode::tproxy) {
    text += "  New TCP connections that come in on " +
            join(intercept.interfaces, [](const std::string& name) { return name; }) +
            " are intercepted (IPv4 and IPv6, TPROXY port " + std::to_string(intercept.port) + ").\n";
    switch (intercept.source) {
      case config::Source::client:
        text += "  The server sees the client's address.\n";
        break;
      case config::Source::proxy:
        text += "  The server sees the far proxy's address.\n";
        break;
      case config::Source::automatic:
        text +=
            "  The server sees the client's address, or the far proxy's if replies to the client's address do "
            "not return through the proxy.\n";
        break;
    }
  }
  for (const config::Forward& forward : config.forwards)
    text += "  Connections to " + to_text(forward.listen) + " go to " + to_text(forward.to) + ".\n";
  if (config.socks.listen) text += "  SOCKS5 clients can use " + to_text(*config.socks.listen) + ".\n";
  if (intercept.mode == config::Intercept::Mode::off && config.forwards.empty() && !config.socks.listen)
    text += "  None.\n";
  else
    text += "  While the link is down they " + without_link(intercept.fail) + ".\n";
}

// Closed flows stay closed when the daemon stops, so the operator must be informed how to open them.
void closed_flows(std::string& text, const Config& config) {
  const auto rules = intercept::closed_rules(config);
  if (!rules || !rules->close_something()) return;
  text += "Closed (fail = closed): TCP flows, forwarded by this host or relayed by the daemon, that must use the link:\n";
  for (std::size_t i = 0; i < config.rules.size(); ++i)
    if (config.rules[i].fail)
      text += "  Rule " + std::to_string(i + 1) + " " +
              (*config.rules[i].fail == Fail::closed ? "closes" : "opens") + " the flows for which it is the first match.\n";
  if (config.intercept.fail == Fail::closed)
    text += "  All other flows between this site and the peers' networks are closed: " + networks(rules->peers) + ".\n";
  text += "  The table inet " + intercept::closed_table_name(rules->port) +
          " enforces it, whether or not the daemon runs. To remove it:\n    longhaul fail-closed remove " +
          config.file.string() + "\n";
}

std::string paths(const config::Peer& peer) {
  const char* const uses =
      peer.policy == config::PathPolicy::sum
          ? "bulk transfers use all of them at once, everything else the one with the lowest "
            "round-trip time"
      : peer.policy == config::PathPolicy::best ? "everything uses the one with the lowest round-trip time"
                                                : "everything uses the first one";
  std::string text =
      std::string("    Paths to it (among the working paths of the lowest cost, ") + uses + "):\n";
  for (const config::PeerPath& path : peer.paths)
    text += "      " + path.name + (path.address ? ", to " + to_text(*path.address) : std::string()) +
            (path.local.empty() ? std::string() : ", from " + path.local) + ", rate " +
            (path.rate_bits == 0 ? "measured" : "at most " + config::rate_to_text(path.rate_bits)) +
            ", cost " + std::to_string(path.cost) + ".\n";
  return text;
}

void link(std::string& text, const Config& config) {
  text += "Link:\n";
  if (config.link.listen) text += "  Peers can connect to " + to_text(*config.link.listen) + ".\n";
  for (const config::Peer& peer : config.peers) {
    text += "  The peer \"" + peer.name + "\" " +
            (peer.address ? "is connected to at " + to_text(*peer.address) : std::string("connects to this site")) +
            " and must present the key " +
            join(peer.fingerprints, [](const std::string& key) { return key; }, " or ") +
            (peer.preshared_key_file ? ", and must know the secret in " + peer.preshared_key_file->string() : "") + ".\n";
    text += "    Networks of its site: " + (peer.networks.empty() ? "none" : networks(peer.networks)) + ".\n";
    if (!peer.names.empty())
      text += "    Names resolved there: " +
              join(peer.names, [](const config::NamePattern& pattern) { return pattern.to_text(); }) +
              ".\n";
    if (!peer.paths.empty()) {
      text += paths(peer);
      continue;
    }
    text += "    Rate towards it: " +
            (peer.rate_bits == 0 ? "measured (not configured)"
                                 : "at most " + config::rate_to_text(peer.rate_bits)) +
            ".\n";
  }
  if (config.peers.empty()) text += "  There is no peer.\n";
  if (config.link.total_rate_bits != 0)
    text += "  Rate towards all peers together: at most " + config::rate_to_text(config.link.total_rate_bits) + ".\n";
  if (!config.peers.empty())
    text += "  TCP congestion control towards peers: " + config.link.congestion_control + ".\n";
  text += "  For peers, this site connects to " +
          (config.link.allow.empty() ? "nothing" : "only " + networks(config.link.allow)) + ".\n";
}

void features(std::string& text, const Config& config) {
  text += "Features:\n ";
  for (const auto& [name, value] : config::to_text(config.features))
    (((text += ' ') += name) += '=') += value;
  text += '\n';
  if (!config.modules.empty()) text += "Application modules:\n";
  for (const config::ModuleSettings& module : config.modules)
    text += "  " + module.name + ": flows to port " +
            (module.ports.empty() ? std::string("none")
                                  : join(module.ports, [](std::uint16_t port) { return std::to_string(port); })) +
            (module.any_port ? ", and to others where the client's first bytes are of this protocol" : "") + ".\n";
  if (config.rules.empty()) return;
  text += "Rules (the first match applies):\n";
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    const config::Rule& rule = config.rules[i];
    std::string match;
    if (!rule.to_ports.empty())
      match += " to port " + join(rule.to_ports, [](std::uint16_t port) { return std::to_string(port); });
    if (!rule.to_networks.empty()) match += " to " + networks(rule.to_networks);
    if (!rule.from_networks.empty()) match += " from " + networks(rule.from_networks);
    text += "  " + std::to_string(i + 1) + ". Flows" + (match.empty() ? " (all)" : match) + ": " +
            (rule.features.empty() ? "the features above" : join(rule.features, [](const auto& feature) {
              return feature.first + "=" + feature.second;
            }));
    if (rule.fail) text += "; while the link is down they " + without_link(*rule.fail);
    text += ".\n";
  }
}

std::string sharing(const Config& config) {
  std::string said;
  for (const config::Peer& peer : config.peers)
    for (const config::Peer& other : config.peers)
      if (&peer < &other && config::share_dictionary(config, peer, other))
        said += (said.empty() ? "" : ", ") + ("\"" + peer.name + "\" and \"" + other.name + "\"");
  return said.empty() ? "each peer can use only the data of its own link"
                      : "each peer can use the data of its own link; [dictionary] share also lets these use each "
                        "other's: " + said;
}

// The operator should see which data leaves this host unencrypted.
void exports(std::string& text, const Config& config) {
  const config::Export& exports = config.exports;
  if (!exports.ipfix && !exports.otlp) return;
  text += "Export:\n";
  if (exports.ipfix)
    text += "  Flow records (IPFIX over UDP) go to " + to_text(*exports.ipfix) + ", of live flows every " +
            std::to_string(exports.ipfix_active_timeout.count()) + " s, not encrypted; enterprise number " +
            std::to_string(exports.ipfix_enterprise) + ".\n";
  if (exports.otlp)
    text += "  Metrics (OpenTelemetry over HTTP) go to " + exports.otlp->to_text() + "/v1/metrics every " +
            std::to_string(exports.otlp_interval.count()) +
            (!exports.otlp->tls        ? " s, not encrypted.\n"
             : exports.otlp_ca ? " s; the collector's certificate must be signed by a CA in " + exports.otlp_ca->string() + ".\n"
                               : " s; the collector's certificate must be signed by a CA that this system trusts.\n");
}

void house(std::string& text, const Config& config) {
  const auto& dictionary = config.dictionary;
  const MemoryPlan plan = memory_plan(config);
  text += "Dictionary:\n  " +
          (plan.history_bytes == 0 ? std::string("In memory: none")
                                   : "In memory: at most " + whole_mib(plan.history_bytes) +
                                         " for all peers and both directions, allocated as it fills") +
          "; on disk: " +
          (plan.disk_bytes == 0
               ? std::string("none")
               : config::size_to_text(plan.disk_bytes) + " in " +
                     (dictionary.directory.is_absolute() ? dictionary.directory
                                                         : config.state_dir / dictionary.directory)
                         .string()) +
          ".\n";
  if (dictionary.disk_bytes != 0) text += "  On disk, " + sharing(config) + ".\n";
  const auto& token = config.control.token_file;
  text += "Control:\n  The API listens on " + to_text(config.control.listen) +
          "; requests that change something need the token in " + (token.is_absolute() ? token : config.state_dir / token).string() +
          ".\n";
  if (config.control.tls_listen)
    text += "  Other machines reach the page and the API at https://" + to_text(*config.control.tls_listen) +
            "/; there every request needs the token.\n";
  exports(text, config);
  text += "Limits:\n  " + std::to_string(config.limits.flows) + " flows, " +
          std::to_string(config.limits.flows_of_one_source()) + " per client address, " +
          std::to_string(config.limits.new_flows_per_source) + " new ones per second and address, " +
          std::to_string(config.limits.handshakes) + " TLS handshakes in progress.\n";
  text += "Memory:\n  At most " + config::size_to_text(plan.cap_bytes) +
          " in all: " + whole_mib(plan.credit_bytes) + " of receive credit, " +
          whole_mib(plan.retained_bytes) + " sent and unacknowledged, " + whole_mib(plan.module_bytes) + " in modules, " +
          whole_mib(plan.ahead_bytes) + " read ahead, " +
          whole_mib(plan.history_bytes) + " in memory dictionaries, " + whole_mib(plan.store_bytes) +
          " for the index and queue of the disk dictionary, " + whole_mib(plan.reserve_bytes) + " in reserve.\n";
  text += "Process:\n  When started as root, the daemon " +
          (config.process.user == "root"
               ? std::string("stays root, with all capabilities")
               : "switches to the user " + config.process.user + " and keeps net_admin and net_bind_service") +
          "; access to system calls and files that it does not need is " +
          (config.process.sandbox ? "blocked" : "not blocked (sandbox = false)") + ".\n";
  text += std::string("Log:\n  ") + config.log.level + " and more severe, as " +
          (config.log.json ? "JSON" : "key=value") + " lines on standard error" +
          (config.log.syslog ? " and to syslog at " + config.log.syslog->to_text() : "") + ".\n";
}

}  // namespace

std::string describe(const Config& config, const std::string& fingerprint) {
  std::string text = config.file.string() + " is a valid configuration of the site \"" + config.site + "\".\n";
  if (!fingerprint.empty()) text += "Its peers must configure the fingerprint " + fingerprint + ".\n";
  flows_in(text, config);
  closed_flows(text, config);
  link(text, config);
  features(text, config);
  house(text, config);
  return text;
}

}  // namespace longhaul::cli
