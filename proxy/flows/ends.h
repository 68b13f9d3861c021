// SPDX-License-Identifier: Apache-2.0
// The client and server of a flow as modules identify them: the same for each connection between the two, at
// both proxies, over the link or bypassing it.
#pragma once
#include <array>
#include <boost/asio/ip/address.hpp>
#include <string>

#include "proxy/flows/accepted.h"
#include "proxy/modules/module.h"

namespace longhaul::flows {

// The address in one of its fields; for a server given by name, an address without meaning.
boost::asio::ip::address address_in(const std::array<std::byte, 16>& bytes);
// In readable form. Of a name only the digest is known.
std::string address_text(const std::array<std::byte, 16>& address);

// For a client that does not belong to a peer's networks (peer_may_show): records of that peer's clients with
// this address concern no other site.
modules::Ends ends_of_peers_client(const std::string& peer, const boost::asio::ip::address& client,
                                   const Destination& server);
// The peer's index among those given; zero: none.
std::uint32_t peer_number_in(const std::array<std::byte, 16>& client);
std::uint32_t peer_number(const std::string& peer);

modules::Address bytes_of(const boost::asio::ip::address& address);
modules::Ends ends_of(const boost::asio::ip::address& client, const Destination& server);

}  // namespace longhaul::flows
