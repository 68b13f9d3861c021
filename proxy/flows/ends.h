// SPDX-License-Identifier: Apache-2.0
// Between whom a flow is, as modules know it: the same for each connection of a client to a server, at both
// proxies, over the link or past it.
#pragma once
#include <boost/asio/ip/address.hpp>

#include "proxy/flows/accepted.h"
#include "proxy/modules/module.h"

namespace longhaul::flows {

// The address in one of its fields; of a server that is named, some address that means nothing.
boost::asio::ip::address address_in(const std::array<std::byte, 16>& bytes);
modules::Ends ends_of(const boost::asio::ip::address& client, const Destination& server);

}  // namespace longhaul::flows
