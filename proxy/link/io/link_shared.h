// SPDX-License-Identifier: Apache-2.0
// State that all links of a daemon share: limits, keys, this side's modules, and callbacks. Outlives the
// links.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codecs/reduction/reduction.h"
#include "proxy/config/config.h"
#include "proxy/link/io/tcp_carrier.h"
#include "proxy/link/io/udp_endpoint.h"
#include "proxy/net/name_resolver.h"

namespace longhaul::link {

class PeerLink;

struct LinkShared {
  boost::asio::io_context& io;
  const TlsContext& tls;
  const config::Link& config;
  std::string site;
  identity::PresharedKeys preshared;
  CreditPool& pool;
  RetainedBudget& retained;
  config::Features allowed;       // features that this side allows, for any flow
  std::uint32_t max_streams = 0;  // streams that one peer may have open
  TotalRate total_rate;
  std::vector<ModuleName> modules{};  // modules of this side
  // Creates the block codec of a session, if the peer has one, too; `tls` has the keys of both. Empty if this
  // side does not use blocks.
  std::function<std::unique_ptr<reduction::Reduction>(const config::Peer&, const TlsEngine& tls,
                                                      const BlockChecksum&)>
      make_codec{};
  // Called when the peer has proved its key from that address.
  std::function<void(const PeerLink&, const boost::asio::ip::address&)> on_connected{};
  std::function<void(const PeerLink&)> on_peer_allows{};  // the features that the peer allows have changed
  // Called when the link is no longer `up`, from the event loop, like events.
  std::function<void(PeerLink&)> on_link_lost{};
  // Whether the link's flows are still being decided again: until that is done, their streams are kept.
  std::function<bool(const PeerLink&)> decides_anew{};
  // Called when the link is not up, the peer has closed its end of the control connection, and nothing
  // arrived since: its process has ended. Not called if the peer reconnects first as another process.
  std::function<void(PeerLink&)> on_peer_gone{};
  // Called when the peer's process may have ended (PeerLink::perhaps_gone()).
  std::function<void(PeerLink&)> on_peer_doubted{};
  std::uint32_t handshakes = 0;  // TLS handshakes in progress on all links
  // Only for the links, so that look-ups for clients cannot delay those for peers.
  net::NameResolver resolver{};
  // On the address that also accepts control connections; null if this site only dials.
  std::unique_ptr<udp::UdpEndpoint> udp{};
};

}  // namespace longhaul::link
