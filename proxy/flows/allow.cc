// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/allow.h"

#include <algorithm>

namespace longhaul::flows {

using boost::asio::ip::address;

namespace {

bool is_single_address(const config::Network& network) {
  return network.prefix_length == (network.address.is_v4() ? 32u : 128u);
}

bool has(const std::vector<address>& addresses, const address& wanted) {
  return std::find(addresses.begin(), addresses.end(), wanted) != addresses.end();
}

// The network holds loopback or link-local addresses only: its prefix is at least as long as theirs.
bool holds_nothing_else(const config::Network& network) {
  const bool v4 = network.address.is_v4();
  if (is_loopback(network.address)) return network.prefix_length >= (v4 ? 8u : 128u);
  if (is_link_local(network.address)) return network.prefix_length >= (v4 ? 16u : 10u);
  return false;
}

}  // namespace

bool is_loopback(const address& any) { return config::unmapped(any).is_loopback(); }

bool is_link_local(const address& any) {
  const address plain = config::unmapped(any);
  if (plain.is_v6()) return plain.to_v6().is_link_local();  // fe80::/10, RFC 4291 section 2.5.6
  const auto bytes = plain.to_v4().to_bytes();
  return bytes[0] == 169 && bytes[1] == 254;  // RFC 3927 section 2.1
}

bool never_dialled(const address& any) {
  const address plain = config::unmapped(any);
  if (plain.is_unspecified() || plain.is_multicast()) return true;
  if (plain.is_v6()) return false;
  const auto bytes = plain.to_v4().to_bytes();
  return bytes[0] == 0 || bytes[0] >= 240;  // "this network", reserved and broadcast: RFC 6890 section 2.2.2
}

bool peer_may_dial(const std::vector<config::Network>& allow, const address& wanted,
                   const std::vector<address>& own) {
  const address plain = config::unmapped(wanted);
  if (never_dialled(plain)) return false;
  const bool cable = is_loopback(plain) || is_link_local(plain);
  const bool special = cable || has(own, plain);
  return std::any_of(allow.begin(), allow.end(), [&](const config::Network& network) {
    if (!config::contains(network, plain)) return false;
    return !special || is_single_address(network) || (cable && holds_nothing_else(network));
  });
}

bool peer_may_show(const std::vector<config::Peer>& peers, const config::Peer& peer,
                   const std::vector<config::Network>& own_networks, const address& client) {
  const address plain = config::unmapped(client);
  if (never_dialled(plain) || is_loopback(plain) || is_link_local(plain)) return false;
  const auto longest_of = [&](const std::vector<config::Network>& networks) {
    int longest = -1;
    for (const config::Network& network : networks)
      if (config::contains(network, plain))
        longest = std::max(longest, static_cast<int>(network.prefix_length));
    return longest;
  };
  const int longest = longest_of(peer.networks);
  return longest > longest_of(own_networks) &&
         std::all_of(peers.begin(), peers.end(), [&](const config::Peer& other) {
           return other.name == peer.name || longest > longest_of(other.networks);
         });
}

bool client_may_dial(const address& client, const address& wanted, const std::vector<address>& own) {
  const address plain = config::unmapped(wanted);
  if (never_dialled(plain)) return false;
  const auto here = [&](const address& any) { return is_loopback(any) || has(own, config::unmapped(any)); };
  return here(client) || (!here(plain) && !is_link_local(plain));
}

}  // namespace longhaul::flows
