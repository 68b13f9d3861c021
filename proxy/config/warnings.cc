// SPDX-License-Identifier: Apache-2.0
// Warns about settings that are valid but probably not intended. read.cc reports errors.
#include <algorithm>

#include "proxy/config/read.h"
#include "proxy/config/rules.h"
#include "proxy/config/sharing.h"

namespace longhaul::config {
namespace {

template <class T>
bool covers(const std::vector<T>& wide, const std::vector<T>& narrow) {
  if (wide.empty()) return true;
  if (narrow.empty()) return false;
  return std::all_of(narrow.begin(), narrow.end(), [&](const T& item) {
    return std::any_of(wide.begin(), wide.end(), [&](const T& other) {
      if constexpr (std::is_same_v<T, Network>)
        return other.prefix_length <= item.prefix_length && contains(other, item.address);
      else
        return other == item;
    });
  });
}

// Whether every flow that matches `later` also matches `earlier`.
bool hides(const Rule& earlier, const Rule& later) {
  return covers(earlier.to_ports, later.to_ports) && covers(earlier.to_networks, later.to_networks) &&
         covers(earlier.from_networks, later.from_networks);
}

bool turns_transport_off(const Rule& rule) {
  Features features;
  for (const auto& [name, value] : rule.features) (void)set_feature(features, name, value);
  return features.transport == Transport::off;
}

// fail = closed guarantees that nothing leaves unencrypted, so settings with which it refuses everything
// deserve a warning.
void add_closed(const Config& config, std::vector<std::string>& list) {
  const bool closed = config.intercept.fail == Fail::closed;
  if (closed && config.features.transport == Transport::off)
    list.push_back(
        "[features] transport is \"off\" and [intercept] fail is \"closed\": all flows to peers' networks are "
        "refused, unless a [[rule]] says fail = \"open\".");
  for (std::size_t i = 0; i < config.rules.size(); ++i)
    if (config.rules[i].fail.value_or(config.intercept.fail) == Fail::closed && turns_transport_off(config.rules[i]))
      list.push_back("Rule " + std::to_string(i + 1) +
                     " sets transport to \"off\", but fail = \"closed\" requires the link, so its flows are refused. Add "
                     "fail = \"open\" to the rule to let them bypass the link.");
  for (const Peer& peer : config.peers) {
    const auto is_v4 = [](const Network& network) { return network.address.is_v4(); };
    if (!closed || peer.networks.empty()) continue;
    const bool any_v4 = std::any_of(peer.networks.begin(), peer.networks.end(), is_v4);
    const bool all_v4 = std::all_of(peer.networks.begin(), peer.networks.end(), is_v4);
    if (any_v4 != all_v4) continue;  // both families
    list.push_back("The peer \"" + peer.name + "\" has no " + (any_v4 ? "IPv6" : "IPv4") +
                   " network, so fail = \"closed\" does not cover " + (any_v4 ? "IPv6" : "IPv4") +
                   " traffic to its site: if the site has such networks, add them.");
  }
}

// Values that enable something which another setting of this file prevents. `in_force`: the resulting
// features.
void add_idle_features(const Config& config, const std::string& where,
                       const std::vector<std::pair<std::string, std::string>>& typed, const Features& in_force,
                       std::vector<std::string>& list) {
  const auto is_idle = [&](const std::string& name, const std::string& prevented_by) {
    list.push_back(where + name + " has no effect while " + prevented_by + ".");
  };
  for (const auto& [name, value] : typed) {
    const bool is_on = name != "transport" && name != "preset" && value != "false" && value != "off" && value != "auto";
    if (is_on && in_force.transport == Transport::off) {
      is_idle(name, "transport is off");
      continue;
    }
    if (is_on && name == "fec" && in_force.transport == Transport::tcp) is_idle(name, "transport is tcp");
    if (name == "dedup_disk" && value == "true") {
      if (!in_force.dedup_memory)
        is_idle(name, "dedup_memory is false");
      else if (config.dictionary.disk_bytes == 0)
        is_idle(name, "[dictionary] disk is 0");
    }
    if (name == "dedup_memory" && value == "true" && config.dictionary.memory_bytes == 0)
      is_idle(name, "[dictionary] memory is 0");
    const FeatureTable& modules = in_force.modules.table();
    const auto row = modules.find(name);
    if (!row || in_force.modules[*row] == 0) continue;
    const std::string_view whole = modules.rows()[*row].part_of;
    if (!whole.empty() && in_force.modules.value(whole) == 0) is_idle(name, std::string(whole) + " is off");
  }
}

void add_idle_features(const Config& config, std::vector<std::string>& list) {
  add_idle_features(config, "[features] ", config.typed_features, config.features, list);
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    const Rule& rule = config.rules[i];
    Features in_force = config.features;
    for (const auto& [name, value] : rule.features) (void)set_feature(in_force, name, value);
    add_idle_features(config, "In rule " + std::to_string(i + 1) + ", ", rule.features, in_force, list);
  }
}

// Application modules that no flow can reach.
void add_unreachable_modules(const Config& config, std::vector<std::string>& list) {
  for (const ModuleSettings& module : config.modules)
    if (module.ports.empty() && !module.any_port && config.features.modules.value(module.name) != 0)
      list.push_back("[" + module.name + "] ports is empty, so " + module.name +
                     " in [features] has no effect; to switch the module off, set " + module.name + " = false there.");
}

// Keys that configure something which the file does not switch on.
void add_without_effect(const Config& config, std::vector<std::string>& list) {
  const auto has_no_effect = [&](const std::string& key, const std::string& without) {
    list.push_back(key + " has no effect without " + without + ".");
  };
  const Limits usual;
  if (config.limits.handshakes != usual.handshakes && !config.link.listen) has_no_effect("[limits] handshakes", "[link] listen");
  if (config.limits.new_flows_per_source != usual.new_flows_per_source && config.intercept.mode == Intercept::Mode::off)
    has_no_effect("[limits] new_flows_per_source", "[intercept] mode = \"tproxy\"");
  if (config.intercept.mode == Intercept::Mode::off) {
    if (!config.intercept.interfaces.empty()) has_no_effect("[intercept] interfaces", "mode = \"tproxy\"");
    if (config.intercept.port != Intercept{}.port) has_no_effect("[intercept] port", "mode = \"tproxy\"");
  }
  const bool takes_names = config.socks.listen || std::ranges::any_of(config.forwards, [](const Forward& forward) {
                             return !parse_address(forward.to.host);
                           });
  for (const Peer& peer : config.peers)
    if (!peer.names.empty() && !takes_names)
      has_no_effect("The key names of the peer \"" + peer.name + "\"", "[socks] or a [[forward]] to a name, through which clients name their servers");
}

// "sha256:" and one digit 64 times.
bool is_placeholder(const std::string& fingerprint) {
  return fingerprint.size() > 7 && fingerprint.find_first_not_of(fingerprint[7], 7) == std::string::npos;
}

}  // namespace

std::vector<std::string> warnings(const Config& config) {
  std::vector<std::string> list;
  const bool takes_flows = config.intercept.mode != Intercept::Mode::off || !config.forwards.empty() ||
                           config.socks.listen.has_value();
  if (!takes_flows && !config.link.listen)
    list.push_back("There is no [intercept], [[forward]], [socks] or [link] listen, so this daemon would do nothing.");
  if (config.link.listen && config.peers.empty())
    list.push_back("[link] listen is set, but there is no [[peer]], so all connections would be refused.");
  if (config.link.allow.empty() && !config.peers.empty() && !takes_flows)
    list.push_back("[link] allow is empty, so peers can reach no server here, and no flows enter at this site either.");
  if (takes_flows && config.peers.empty())
    list.push_back("There is no [[peer]], so all flows bypass the link.");
  for (const Peer& peer : config.peers) {
    if (std::any_of(peer.fingerprints.begin(), peer.fingerprints.end(), is_placeholder))
      list.push_back("The peer \"" + peer.name +
                     "\" still has the placeholder fingerprint of the examples; "
                     "`longhaul keygen` on the peer prints the right one.");
    if (peer.name == config.site) list.push_back("The peer \"" + peer.name + "\" has the same name as this site.");
    if (takes_flows && peer.networks.empty())
      list.push_back("The peer \"" + peer.name + "\" has no networks, so flows to IP addresses are not sent to it.");
    if (!config.link.allow.empty() && peer.networks.empty())
      list.push_back("The peer \"" + peer.name +
                     "\" has no networks, so no client addresses of its site can be used towards servers here; its flows "
                     "that require that (transparent mode, source = \"auto\" or \"client\") are refused.");
  }
  if (config.link.key_log)
    list.push_back("[link] key_log is set: the keys of all connections with peers are written to " +
                   (config.state_dir / *config.link.key_log).string() +
                   ". Any reader of this file can decrypt everything that crosses the link meanwhile; remove "
                   "the key and the file "
                   "after the capture.");
  for (const Forward& forward : config.forwards) {
    const auto address = parse_address(forward.to.host);
    if (config.peers.empty() ||
        (address ? peer_for(config, *address) : peer_for_name(config, forward.to.host)))
      continue;
    list.push_back("The forward to " + to_text(forward.to) + " bypasses the link: " +
                   (address ? "no peer's networks contain it." : "no peer's names match it."));
  }
  add_closed(config, list);
  add_without_effect(config, list);
  add_idle_features(config, list);
  add_unreachable_modules(config, list);
  for (std::size_t later = 1; later < config.rules.size(); ++later)
    for (std::size_t earlier = 0; earlier < later; ++earlier)
      if (hides(config.rules[earlier], config.rules[later])) {
        list.push_back("Rule " + std::to_string(later + 1) + " is never used: rule " +
                       std::to_string(earlier + 1) + " matches all of its flows first.");
        break;
      }
  for (std::string& warning : sharing_warnings(config)) list.push_back(std::move(warning));
  return list;
}

}  // namespace longhaul::config
