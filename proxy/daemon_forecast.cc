// SPDX-License-Identifier: Apache-2.0
// What would become of a flow that began now: whether it would reach this daemon, as a client's or as a peer's, and
// then what flows.h decides. Only `why` asks; nothing is changed.
#include <algorithm>

#include "proxy/config/network.h"
#include "proxy/daemon_parts.h"
#include "proxy/net/interfaces.h"

namespace longhaul {
namespace asio = boost::asio;
namespace {

using control::Forecast;
using control::Path;

std::optional<boost::asio::ip::address> address_of(const flows::Destination& destination) {
  return destination.host.empty() ? std::optional(destination.address) : std::nullopt;
}

// An address of the network that is none of `own`: the second and later ones, as hosts have.
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

// Of a client of this site.
Forecast Daemon::forecast_here(const flows::Tuple& tuple) const {
  const flows::Decision decision = flows_.decide(tuple.client.address(), tuple.destination);
  Forecast forecast{.path = decision.link      ? Path::over_link
                            : decision.refused ? Path::refused
                                               : Path::bypasses_link,
                    .reason = decision.reason,
                    .peer = decision.peer,
                    .features = decision.policy.features};
  if (decision.policy.rule) forecast.rule = *decision.policy.rule + 1;
  if (decision.refused)
    forecast.sentence = std::string(decision.reason->sentence) +
                        " The flow would be refused, because fail = closed applies to it.";
  if (decision.link && !features_.fast_connect && interception_->is_up())
    forecast.sentence = std::string(decision.reason->sentence) +
                        " With fast_connect = false, only connections to servers that answered within the last hour "
                        "are intercepted, so the first one bypasses this proxy.";
  return forecast;
}

// Of a client of the peer's site, which the peer would send over the link.
Forecast Daemon::forecast_for(const link::PeerLink& link, const flows::Tuple& tuple) {
  const flows::Reason reason = flows_.decide_for_peer(link, tuple.client.address(), tuple.destination);
  const auto policy = config::policy_for(config_, features_, tuple.client.address(), address_of(tuple.destination),
                                         tuple.destination.port);
  Forecast forecast{.path = reason == flows::reasons::optimised ? Path::for_peer : Path::refused,
                    .reason = reason,
                    .peer = link.peer().name,
                    .features = policy.features};
  if (policy.rule) forecast.rule = *policy.rule + 1;
  if (!link.usable()) forecast.path = Path::bypasses_link;
  return forecast;
}

// Clients of this site reach servers at a peer's, and clients of a peer's site those here.
std::optional<asio::ip::address> Daemon::likely_client(const flows::Destination& server) const {
  const auto address = address_of(server);
  const bool is_v6 = address && config::unmapped(*address).is_v6();
  const std::vector<net::Interface> own = net::interfaces();
  const auto of_family = [&](const auto& networks) -> std::optional<asio::ip::address> {
    for (const config::Network& network : networks)
      if (network.address.is_v6() == is_v6 && !is_link_local(network)) return neighbour(network, own);
    return std::nullopt;
  };
  const auto has_it = [&](const config::Network& network) { return config::contains(network, *address); };
  const bool is_here = address && !config::peer_for(config_, *address) &&
                       (std::ranges::any_of(config_.link.allow, has_it) || std::ranges::any_of(own, [&](const net::Interface& each) {
                          return std::ranges::any_of(each.networks, has_it);
                        }));
  if (!is_here) {
    if (config_.intercept.mode != config::Intercept::Mode::tproxy)  // it comes to a listener, most likely from this host
      return is_v6 ? asio::ip::address(asio::ip::address_v6::loopback()) : asio::ip::address_v4::loopback();
    for (const net::Interface& each : own)
      if (std::ranges::find(config_.intercept.interfaces, each.name) != config_.intercept.interfaces.end())
        if (const auto found = of_family(each.networks)) return found;
    return std::nullopt;
  }
  for (const config::Peer& peer : config_.peers)
    if (const auto found = of_family(peer.networks)) return found;
  return std::nullopt;
}

Forecast Daemon::forecast(const flows::Tuple& tuple) {
  const auto client = config::unmapped(tuple.client.address());
  const config::Peer* const of_client = config::peer_for(config_, client);
  const auto server = address_of(tuple.destination);
  if (of_client && (!server || !config::peer_for(config_, *server)))
    for (const auto& link : links_)
      if (link->peer().name == of_client->name) return forecast_for(*link, tuple);

  Forecast forecast = forecast_here(tuple);
  if (config_.intercept.mode != config::Intercept::Mode::tproxy) return forecast;  // it came to a listener
  intercept::Arrival arrival{.is_up = interception_->is_up(),
                             .error = intercept_error_,
                             .interfaces = config_.intercept.interfaces,
                             .peers = peer_addresses(),
                             .own = net::interfaces(),
                             .client_interface = {}};
  if (const auto source = net::source_towards(client))
    if (const net::Interface* way = net::interface_with(arrival.own, *source))
      arrival.client_interface = way->name;
  if (const auto not_taken = intercept::why_not_taken(arrival, client, server)) {
    forecast.reason = flows::reasons::not_intercepted;
    forecast.sentence = not_taken->sentence;
    forecast.remedy = not_taken->remedy;
    forecast.path = Path::not_intercepted;
    if (!arrival.is_up && !flows_.may_leave(tuple.client.address(), tuple.destination)) {
      forecast.path = Path::refused;
      forecast.sentence += " The packet rules behind fail = closed would refuse it.";
    }
  }
  return forecast;
}

}  // namespace longhaul
