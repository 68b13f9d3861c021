// SPDX-License-Identifier: Apache-2.0
// Between whom a flow is, as modules know it: the same for each connection of a client to a server, at both
// proxies, over the link or past it.
#pragma once
#include <array>
#include <boost/asio/ip/address.hpp>
#include <string>

#include "proxy/flows/accepted.h"
#include "proxy/modules/module.h"

namespace longhaul::flows {

// The address in one of its fields; of a server that is named, some address that means nothing.
boost::asio::ip::address address_in(const std::array<std::byte, 16>& bytes);
// As people write it. A name is known by its digest alone.
std::string address_text(const std::array<std::byte, 16>& address);

// Of a client for which a peer does not speak (peer_may_show): what is on record for that peer's clients of
// this address concerns no other site's.
modules::Ends ends_of_peers_client(const std::string& peer, const boost::asio::ip::address& client,
                                   const Destination& server);
// Which peer that was, of those that may have been; zero: none.
std::uint32_t peer_number_in(const std::array<std::byte, 16>& client);
std::uint32_t peer_number(const std::string& peer);

modules::Ends ends_of(const boost::asio::ip::address& client, const Destination& server);

}  // namespace longhaul::flows
