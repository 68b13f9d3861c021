// SPDX-License-Identifier: Apache-2.0
// State that all links of a daemon share: limits, keys, this side's modules, and callbacks. Outlives them.
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
  config::Features allowed;       // by this side, for any flow
  std::uint32_t max_streams = 0;  // that one peer may have open
  TotalRate total_rate;
  std::vector<ModuleName> modules{};  // whose halves this side has
  // Makes the block codec of a session, if the peer has one, too; `tls` has the keys of both. Empty: this
  // side makes no blocks.
  std::function<std::unique_ptr<reduction::Reduction>(const config::Peer&, const TlsEngine& tls,
                                                      const BlockChecksum&)>
      make_codec{};
  // The peer has proved its key from that address.
  std::function<void(const PeerLink&, const boost::asio::ip::address&)> on_connected{};
  std::function<void(const PeerLink&)> on_peer_allows{};  // what the peer allows has changed
  // The link is no longer `up`: called from the loop, like events.
  std::function<void(PeerLink&)> on_link_lost{};
  // Its flows are still being decided again: until that is done, their streams stay as they are.
  std::function<bool(const PeerLink&)> decides_anew{};
  // The link is not up, the peer closed its end of the control connection, and nothing arrived since: its
  // process has ended. Not called if the peer first comes back as another process.
  std::function<void(PeerLink&)> on_peer_gone{};
  // The peer's process may have ended: PeerLink::perhaps_gone().
  std::function<void(PeerLink&)> on_peer_doubted{};
  std::uint32_t handshakes = 0;  // TLS handshakes in progress, all links
  // For the links alone, so that names requested by clients cannot delay those of peers.
  net::NameResolver resolver{};
  // On the address where the control connections are taken, too; null: this site only dials.
  std::unique_ptr<udp::UdpEndpoint> udp{};
};

}  // namespace longhaul::link
