// SPDX-License-Identifier: Apache-2.0
// Linear searches: rules and peers are written by hand, so there are few.
#include "proxy/config/rules.h"

#include <algorithm>

namespace longhaul::config {
namespace {

bool any_contains(const std::vector<Network>& networks, const boost::asio::ip::address& address) {
  return std::any_of(networks.begin(), networks.end(),
                     [&](const Network& network) { return contains(network, address); });
}

// The length of the longest prefix that contains the address.
std::optional<unsigned> longest(const std::vector<Network>& networks, const boost::asio::ip::address& address) {
  std::optional<unsigned> best;
  for (const Network& network : networks)
    if (contains(network, address) && (!best || network.prefix_length > *best)) best = network.prefix_length;
  return best;
}

}  // namespace

bool matches(const Rule& rule, const boost::asio::ip::address& client,
             const std::optional<boost::asio::ip::address>& destination, std::uint16_t port) {
  const auto& ports = rule.to_ports;
  if (!ports.empty() && std::find(ports.begin(), ports.end(), port) == ports.end()) return false;
  if (!rule.to_networks.empty() && !(destination && any_contains(rule.to_networks, *destination)))
    return false;
  return rule.from_networks.empty() || any_contains(rule.from_networks, client);
}

FlowPolicy policy_for(const Config& config, const Features& global, const boost::asio::ip::address& client,
                      const std::optional<boost::asio::ip::address>& destination, std::uint16_t port) {
  FlowPolicy policy{.features = global, .fail = std::nullopt, .rule = std::nullopt};
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    const Rule& rule = config.rules[i];
    if (!matches(rule, client, destination, port)) continue;
    policy.rule = i;
    for (const auto& [name, value] : rule.features) (void)set_feature(policy.features, name, value);
    policy.fail = rule.fail;
    break;
  }
  return policy;
}

const Peer* peer_for(const Config& config, const boost::asio::ip::address& address) {
  const Peer* best = nullptr;
  std::optional<unsigned> best_length;
  for (const Peer& peer : config.peers)
    if (const auto length = longest(peer.networks, address); length > best_length)
      best = &peer, best_length = length;
  return best;
}

const Peer* peer_for_name(const Config& config, std::string_view host) {
  const Peer* best = nullptr;
  const NamePattern* longest = nullptr;
  bool claimed = false;
  for (const Peer& peer : config.peers) {
    for (const NamePattern& pattern : peer.names) {
      claimed = true;
      // A whole name is longer than every suffix of it, so it wins.
      if (matches(pattern, host) && (!longest || pattern.name.size() > longest->name.size()))
        best = &peer, longest = &pattern;
    }
  }
  return !claimed && config.peers.size() == 1 ? &config.peers.front() : best;
}

bool is_closed(const Config& config, const FlowPolicy& policy, const Peer* peer) {
  return policy.fail.value_or(peer ? config.intercept.fail : Fail::open) == Fail::closed;
}

bool leaves_again(const Config& config, const boost::asio::ip::address& client,
                  const boost::asio::ip::address& destination, std::uint16_t port) {
  const Peer* const peer = peer_for(config, destination);
  if (!peer || longest(config.link.allow, destination) > longest(peer->networks, destination)) return false;
  return is_closed(config, policy_for(config, config.features, client, destination, port), peer);
}

}  // namespace longhaul::config
