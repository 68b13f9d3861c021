// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/paths.h"

#include <algorithm>

#include "proxy/flows/link_reasons.h"

namespace longhaul::flows {
namespace asio = boost::asio;

Paths::Paths(const config::Config& config, const config::Features& features,
             const std::vector<std::unique_ptr<link::PeerLink>>& links, const Admission& admission,
             const ClientLosses& losses, const UnreachableServers& unreachable)
    : config_(config),
      features_(features),
      links_(links),
      admission_(admission),
      losses_(losses),
      unreachable_(unreachable) {}

const config::Peer* Paths::peer_of(const Destination& destination) const {
  const auto address = address_of(destination);
  return address ? config::peer_for(config_, *address) : config::peer_for_name(config_, destination.host);
}

config::FlowPolicy Paths::policy_for(const asio::ip::address& client, const Destination& destination) const {
  return config::policy_for(config_, features_, client, address_of(destination), destination.port);
}

bool Paths::may_leave(const asio::ip::address& client, const Destination& destination) const {
  const auto policy = policy_for(client, destination);
  return closed_ == Closed::lifted || !config::is_closed(config_, policy, peer_of(destination));
}

bool Paths::leaves_again(const asio::ip::address& client, const asio::ip::address& server,
                         std::uint16_t port) const {
  return closed_ == Closed::enforced && config::leaves_again(config_, client, server, port);
}

Decision Paths::decide(const asio::ip::address& client, const Destination& destination) const {
  Decision decision{.policy = policy_for(client, destination)};
  const config::Peer* peer = peer_of(destination);
  if (peer) decision.peer = peer->name;
  const bool closed = closed_ == Closed::enforced && config::is_closed(config_, decision.policy, peer);
  auto past = [&](Reason reason) {
    decision.reason = reason;
    decision.refused = closed;
    return decision;
  };
  if (decision.policy.features.transport == config::Transport::off) return past(reasons::transport_off);
  if (!peer) return past(reasons::no_peer_for_network);
  auto link =
      std::find_if(links_.begin(), links_.end(), [&](const auto& l) { return l->peer().name == peer->name; });
  if (link == links_.end()) return past(reasons::link_never_up);
  if (Reason reason = reason_of((*link)->state()); reason != reasons::optimised) return past(reason);
  // Only features that both sides allow are in force, so the peer can switch the transport off, too.
  if ((*link)->session_if_any()->incoming().peer_allowed().transport == config::Transport::off)
    return past(reasons::transport_off);
  // A flow that may not bypass the link is sent to the far side again. So is a flow whose client must be
  // notified of lost writes: over the link the module can report them even in signed or encrypted sessions.
  const auto known =
      closed ? std::nullopt : unreachable_.reason_for(destination, UnreachableServers::Clock::now());
  if (known && !losses_.why_guarded(client, destination)) return past(*known);
  if (const auto limit = admission_.limit_reached(client)) return past(*limit);
  if ((*link)->memory_used_up()) return past(reasons::memory_limit);
  decision.link = link->get();
  return decision;
}

}  // namespace longhaul::flows
