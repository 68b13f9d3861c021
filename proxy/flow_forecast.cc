// SPDX-License-Identifier: Apache-2.0
#include "proxy/flow_forecast.h"

#include "proxy/config/network.h"
#include "proxy/config/rules.h"
#include "proxy/intercept/arrival.h"
#include "proxy/net/interfaces.h"
#include "proxy/peer_addresses.h"

namespace longhaul {
namespace {

using control::Forecast;
using control::Path;

std::optional<boost::asio::ip::address> address_of(const flows::Destination& destination) {
  return destination.host.empty() ? std::optional(destination.address) : std::nullopt;
}

}  // namespace

// For a client of this site.
Forecast FlowForecast::of_this_site(const flows::Tuple& tuple) const {
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
  if (decision.link && !features_.fast_connect && transparent_.is_up())
    forecast.sentence =
        std::string(decision.reason->sentence) +
        " With fast_connect = false, only connections to servers that answered within the last hour "
        "are intercepted, so the first one bypasses this proxy.";
  return forecast;
}

// For a client of the peer's site, whose flow the peer would send over the link.
Forecast FlowForecast::of_peer(const link::PeerLink& link, const flows::Tuple& tuple) {
  const flows::Reason reason = flows_.decide_for_peer(link, tuple.client.address(), tuple.destination);
  const auto policy = config::policy_for(config_, features_, tuple.client.address(),
                                         address_of(tuple.destination), tuple.destination.port);
  Forecast forecast{.path = reason == flows::reasons::optimised ? Path::for_peer : Path::refused,
                    .reason = reason,
                    .peer = link.peer().name,
                    .features = policy.features};
  if (policy.rule) forecast.rule = *policy.rule + 1;
  if (!link.usable()) forecast.path = Path::bypasses_link;
  return forecast;
}

Forecast FlowForecast::of(const flows::Tuple& tuple) {
  const auto client = config::unmapped(tuple.client.address());
  const config::Peer* const of_client = config::peer_for(config_, client);
  const auto server = address_of(tuple.destination);
  if (of_client && (!server || !config::peer_for(config_, *server)))
    for (const auto& link : links_)
      if (link->peer().name == of_client->name) return of_peer(*link, tuple);

  Forecast forecast = of_this_site(tuple);
  if (config_.intercept.mode != config::Intercept::Mode::tproxy) return forecast;  // it uses a listener
  intercept::Arrival arrival{.is_up = transparent_.is_up(),
                             .error = transparent_.error(),
                             .interfaces = config_.intercept.interfaces,
                             .peers = configured_addresses(config_.peers),
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
      forecast.sentence += " The packet rules of fail = closed would refuse it.";
    }
  }
  return forecast;
}

}  // namespace longhaul
