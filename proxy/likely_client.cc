// SPDX-License-Identifier: Apache-2.0
#include "proxy/likely_client.h"

#include <algorithm>

#include "proxy/config/network.h"
#include "proxy/config/rules.h"

namespace longhaul {
namespace asio = boost::asio;
namespace {

// An address of the network that is not in `own`, starting at the second one, which is typical of hosts.
asio::ip::address neighbour(const config::Network& network, const std::vector<net::Interface>& own) {
  const bool is_v6 = network.address.is_v6();
  if (network.prefix_length == (is_v6 ? 128u : 32u)) return network.address;
  auto address = network.address;
  for (unsigned number = 2; number < 10; ++number) {
    if (is_v6) {
      auto bytes = address.to_v6().to_bytes();
      bytes.back() = static_cast<unsigned char>(network.address.to_v6().to_bytes().back() + number);
      address = asio::ip::address_v6(bytes);
    } else {
      address = asio::ip::address_v4(network.address.to_v4().to_uint() + number);
    }
    if (net::interface_with(own, address) == nullptr) break;
  }
  return config::contains(network, address) ? address : network.address;
}

bool is_link_local(const config::Network& network) {
  return network.address.is_v6() && network.address.to_v6().is_link_local();
}

}  // namespace

// Clients of this site use servers at a peer's site, and clients of a peer's site use servers here.
std::optional<asio::ip::address> likely_client(const config::Config& config,
                                               const std::vector<net::Interface>& own,
                                               const flows::Destination& server) {
  const auto address = server.host.empty() ? std::optional(server.address) : std::nullopt;
  const bool is_v6 = address && config::unmapped(*address).is_v6();
  const auto of_family = [&](const auto& networks) -> std::optional<asio::ip::address> {
    for (const config::Network& network : networks)
      if (network.address.is_v6() == is_v6 && !is_link_local(network)) return neighbour(network, own);
    return std::nullopt;
  };
  const auto has_it = [&](const config::Network& network) { return config::contains(network, *address); };
  const bool is_here = address && !config::peer_for(config, *address) &&
                       (std::ranges::any_of(config.link.allow, has_it) ||
                        std::ranges::any_of(own, [&](const net::Interface& each) {
                          return std::ranges::any_of(each.networks, has_it);
                        }));
  if (!is_here) {
    if (config.intercept.mode !=
        config::Intercept::Mode::tproxy)  // the flow uses a listener, most likely from this host
      return is_v6 ? asio::ip::address(asio::ip::address_v6::loopback()) : asio::ip::address_v4::loopback();
    for (const net::Interface& each : own)
      if (std::ranges::find(config.intercept.interfaces, each.name) != config.intercept.interfaces.end())
        if (const auto found = of_family(each.networks)) return found;
    return std::nullopt;
  }
  for (const config::Peer& peer : config.peers)
    if (const auto found = of_family(peer.networks)) return found;
  return std::nullopt;
}

}  // namespace longhaul
