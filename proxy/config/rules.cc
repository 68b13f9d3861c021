// SPDX-License-Identifier: Apache-2.0
// Linear searches: rules and peers are written by a person, and are few.
#include "proxy/config/rules.h"

#include <algorithm>

namespace longhaul::config {
namespace {

bool any_contains(const std::vector<Network>& networks, const boost::asio::ip::address& address) {
  return std::any_of(networks.begin(), networks.end(),
                     [&](const Network& network) { return contains(network, address); });
}

bool is_special(const boost::asio::ip::address& address) {
  if (address.is_loopback() || address.is_multicast() || address.is_unspecified()) return true;
  if (address.is_v6()) return address.to_v6().is_link_local();
  static const Network kLinkLocal = parse_network("169.254.0.0/16").value();  // RFC 3927
  static const Network kThisHost = parse_network("0.0.0.0/8").value();        // RFC 1122 section 3.2.1.3
  static const Network kBroadcast = parse_network("255.255.255.255/32").value();
  return contains(kLinkLocal, address) || contains(kThisHost, address) || contains(kBroadcast, address);
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
  FlowPolicy policy{.features = global, .fail = config.intercept.fail, .rule = std::nullopt};
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    const Rule& rule = config.rules[i];
    if (!matches(rule, client, destination, port)) continue;
    policy.rule = i;
    for (const auto& [name, value] : rule.features) (void)set_feature(policy.features, name, value);
    policy.fail = rule.fail.value_or(policy.fail);
    break;
  }
  return policy;
}

const Peer* peer_for(const Config& config, const std::optional<boost::asio::ip::address>& destination) {
  if (!destination) return config.peers.size() == 1 ? &config.peers.front() : nullptr;
  const Peer* best = nullptr;
  unsigned best_length = 0;
  for (const Peer& peer : config.peers)
    for (const Network& network : peer.networks)
      if (contains(network, *destination) && (best == nullptr || network.prefix_length > best_length))
        best = &peer, best_length = network.prefix_length;
  return best;
}

bool names_exactly(const Config& config, const boost::asio::ip::address& address) {
  const auto plain = unmapped(address);
  const unsigned bits = plain.is_v4() ? 32 : 128;
  return std::any_of(config.link.allow.begin(), config.link.allow.end(), [&](const Network& network) {
    return network.address == plain && network.prefix_length == bits;
  });
}

bool may_dial(const Config& config, const boost::asio::ip::address& address) {
  const auto plain = unmapped(address);
  return is_special(plain) ? names_exactly(config, plain) : any_contains(config.link.allow, plain);
}

}  // namespace longhaul::config
