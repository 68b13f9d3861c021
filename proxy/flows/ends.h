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

// The address in one of the fields of modules::Ends; meaningless for a server given by name.
boost::asio::ip::address address_in(const std::array<std::byte, 16>& bytes);
// The address as text. For a server given by name, only the digest of the name is known.
std::string address_text(const std::array<std::byte, 16>& address);

// For a client that does not belong to a peer's networks (peer_may_show): records of that peer's clients with
// this address concern no other site.
modules::Ends ends_of_peers_client(const std::string& peer, const boost::asio::ip::address& client,
                                   const Destination& server);
// The peer number inside a client address made by ends_of_peers_client(); zero if there is none.
std::uint32_t peer_number_in(const std::array<std::byte, 16>& client);
std::uint32_t peer_number(const std::string& peer);

modules::Address bytes_of(const boost::asio::ip::address& address);
modules::Ends ends_of(const boost::asio::ip::address& client, const Destination& server);

}  // namespace longhaul::flows
