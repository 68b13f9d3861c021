// SPDX-License-Identifier: Apache-2.0
// Which path a new flow of this site's client takes: over the link to a peer, bypassing it, or none because
// fail = closed applies. Decides only; near_flows.h and bypassing_flows.h act on it. The packet rules (intercept/) let
// some connections bypass the daemon before this; lost_links.h decides again when a link is lost.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <memory>
#include <string>
#include <vector>

#include "proxy/config/rules.h"
#include "proxy/flows/admission.h"
#include "proxy/flows/client_losses.h"
#include "proxy/flows/unreachable_servers.h"
#include "proxy/link/io/peer_link.h"

namespace longhaul::flows {

struct Decision {
  config::FlowPolicy policy;
  link::PeerLink* link = nullptr;  // the peer whose link is used; none: bypass
  std::string peer;                // that has the destination, whether its link is used or not
  Reason reason = reasons::optimised;
  bool refused = false;  // fail = closed, and the link cannot be used
};

// fail = closed, as configured. Lifted: by the operator's command, until it is enforced again.
enum class Closed : std::uint8_t { enforced, lifted };

class Paths {
 public:
  // All references outlive this object.
  Paths(const config::Config& config, const config::Features& features,
        const std::vector<std::unique_ptr<link::PeerLink>>& links, const Admission& admission,
        const ClientLosses& losses, const UnreachableServers& unreachable);

  void set_closed(Closed closed) { closed_ = closed; }

  Decision decide(const boost::asio::ip::address& client, const Destination& destination) const;
  // Bypassing the link, as far as fail = closed is concerned.
  bool may_leave(const boost::asio::ip::address& client, const Destination& destination) const;
  // For a peer's client: whether its bytes would leave this site again without a link, which fail = closed
  // forbids.
  bool leaves_again(const boost::asio::ip::address& client, const boost::asio::ip::address& server,
                    std::uint16_t port) const;
  // The features in force now for such a flow.
  config::FlowPolicy policy_for(const boost::asio::ip::address& client, const Destination& destination) const;

 private:
  const config::Peer* peer_of(const Destination& destination) const;

  const config::Config& config_;
  const config::Features& features_;
  const std::vector<std::unique_ptr<link::PeerLink>>& links_;
  const Admission& admission_;
  const ClientLosses& losses_;
  const UnreachableServers& unreachable_;
  Closed closed_ = Closed::enforced;
};

// None: a name, which is resolved elsewhere.
inline std::optional<boost::asio::ip::address> address_of(const Destination& destination) {
  return destination.host.empty() ? std::optional(destination.address) : std::nullopt;
}

}  // namespace longhaul::flows
