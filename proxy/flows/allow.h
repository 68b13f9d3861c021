// SPDX-License-Identifier: Apache-2.0
// Decides which addresses this machine may connect to on behalf of others, from the `allow` list and its own
// addresses. Pure; the dialer resolves names and provides the own addresses.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul::flows {

// Addresses of this machine or of its own network segment. IPv4-mapped IPv6 addresses count as IPv4.
bool is_loopback(const boost::asio::ip::address& address);
bool is_link_local(const boost::asio::ip::address& address);
// Invalid destinations: unspecified ("this machine" to Linux), multicast, broadcast.
bool never_dialled(const boost::asio::ip::address& address);

// For a peer: `wanted` lies in `allow`; and if it is loopback, link-local or one of `own`, an entry names it
// exactly: a single address, or (loopback and link-local) a network of nothing else.
bool peer_may_dial(const std::vector<config::Network>& allow, const boost::asio::ip::address& wanted,
                   const std::vector<boost::asio::ip::address>& own);

// Whether a peer (one of `peers`) may use this client address towards servers: an address belongs to the peer
// whose networks contain it with the longest prefix, unless this machine is itself in a network with the same
// prefix or a longer one. Loopback, link-local and multicast addresses belong to no peer.
bool peer_may_show(const std::vector<config::Peer>& peers, const config::Peer& peer,
                   const std::vector<config::Network>& own_networks, const boost::asio::ip::address& client);

// For a client that names its destination itself and may be a stranger to this machine: everything except
// this machine's own addresses and link-local ones, unless the client is on this machine too.
bool client_may_dial(const boost::asio::ip::address& client, const boost::asio::ip::address& wanted,
                     const std::vector<boost::asio::ip::address>& own);

}  // namespace longhaul::flows
