// SPDX-License-Identifier: Apache-2.0
// Compares a table whose keys can all be changed key by key. In any other table the changeable keys are first
// made equal, and any remaining difference needs a restart. So a new key that is missing here needs a
// restart.
#include "proxy/config/changes.h"

#include <algorithm>

namespace longhaul::config {
namespace {

const Peer* find(const std::vector<Peer>& peers, const std::string& name) {
  const auto found =
      std::find_if(peers.begin(), peers.end(), [&](const Peer& peer) { return peer.name == name; });
  return found == peers.end() ? nullptr : &*found;
}

std::string differences(const Peer& before, const Peer& after) {
  std::string list;
  const auto note = [&](bool differs, std::string_view key) {
    if (differs) list += (list.empty() ? "" : ", ") + std::string(key);
  };
  note(before.address != after.address && before.paths.empty() && after.paths.empty(), "address");
  note(before.fingerprints != after.fingerprints, "fingerprint");
  note(before.preshared_key_file != after.preshared_key_file, "preshared_key_file");
  note(before.networks != after.networks, "networks");
  note(before.names != after.names, "names");
  note(before.rate_bits != after.rate_bits, "rate");
  note(before.paths != after.paths, "path");
  note(before.policy != after.policy, "policy");
  note(before.dictionary_memory_bytes != after.dictionary_memory_bytes, "dictionary_memory");
  note(before.groups != after.groups, "groups");
  if (list.empty() && before != after) list = "other settings";
  return list;
}

void compare_peers(const Config& before, const Config& after, Changes& changes) {
  for (const Peer& peer : before.peers)
    if (!find(after.peers, peer.name)) changes.live.push_back("[[peer]] " + peer.name + ": removed");
  for (const Peer& peer : after.peers) {
    const Peer* old = find(before.peers, peer.name);
    if (!old)
      changes.live.push_back("[[peer]] " + peer.name + ": added");
    else if (*old != peer)
      changes.live.push_back("[[peer]] " + peer.name + ": " + differences(*old, peer));
  }
}

}  // namespace

Changes changes(const Config& before, const Config& after) {
  Changes changes;
  const auto live = [&](bool differs, std::string_view key) {
    if (differs) changes.live.emplace_back(key);
  };
  const auto fixed = [&](bool differs, std::string_view key) {
    if (differs) changes.fixed.emplace_back(key);
  };
  compare_peers(before, after, changes);
  live(before.rules != after.rules, "[[rule]]");
  live(before.features != after.features, "[features]");
  if (before.servers != after.servers)
    changes.live.push_back("[[" + (after.servers.empty() ? before : after).servers.front().name + "]]");
  for (std::size_t i = 0; i < std::min(before.modules.size(), after.modules.size()); ++i)
    live(before.modules[i] != after.modules[i], "[" + after.modules[i].name + "]");

  live(before.identity.certificate != after.identity.certificate, "[identity] certificate");
  live(before.identity.private_key != after.identity.private_key, "[identity] private_key");

  Link link = before.link;
  live(link.allow != after.link.allow, "[link] allow");
  live(link.total_rate_bits != after.link.total_rate_bits, "[link] total_rate");
  live(link.congestion_control != after.link.congestion_control, "[link] congestion_control");
  link.allow = after.link.allow;
  link.total_rate_bits = after.link.total_rate_bits;
  link.congestion_control = after.link.congestion_control;
  fixed(link.key_log != after.link.key_log, "[link] key_log");
  link.key_log = after.link.key_log;
  fixed(link != after.link, "[link] listen");

  Limits limits = before.limits;
  live(limits.handshakes != after.limits.handshakes, "[limits] handshakes");
  live(limits.flows_per_source != after.limits.flows_per_source, "[limits] flows_per_source");
  live(limits.new_flows_per_source != after.limits.new_flows_per_source, "[limits] new_flows_per_source");
  limits.handshakes = after.limits.handshakes;
  limits.flows_per_source = after.limits.flows_per_source;
  limits.new_flows_per_source = after.limits.new_flows_per_source;
  // Credit is reserved for the largest possible number of flows at the start.
  if (after.limits.flows < limits.flows) {
    live(true, "[limits] flows");
    limits.flows = after.limits.flows;
  }
  fixed(limits.flows != after.limits.flows, "[limits] flows (more than before)");
  limits.flows = after.limits.flows;
  fixed(limits != after.limits, "[limits]");

  fixed(before.site != after.site, "site");
  fixed(before.state_dir != after.state_dir, "state_dir");
  Intercept intercept = before.intercept;
  live(intercept.fail != after.intercept.fail, "[intercept] fail");
  intercept.fail = after.intercept.fail;
  fixed(intercept != after.intercept, "[intercept]");
  fixed(before.forwards != after.forwards, "[[forward]]");
  fixed(before.socks != after.socks, "[socks]");
  fixed(before.dictionary != after.dictionary, "[dictionary]");
  fixed(before.control != after.control, "[control]");
  fixed(before.exports != after.exports, "[export]");
  fixed(before.process != after.process, "[process]");
  fixed(before.log != after.log, "[log]");
  return changes;
}

}  // namespace longhaul::config
