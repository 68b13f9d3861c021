// SPDX-License-Identifier: Apache-2.0
// Relays a flow outside the link that a module's guard reads (proxy/modules/guard.h): passes bytes through
// the guard until it steps aside; the plain relay carries the rest.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>

#include "proxy/flows/flow_table.h"
#include "proxy/flows/relay.h"
#include "proxy/modules/guard.h"
#include "proxy/modules/memory.h"

namespace longhaul::flows {

// Like Relay::run. Returns nullopt if the guard has stepped aside: then the kernel has all its output, and
// both sockets are still open; the next reader sees an earlier end of the client or the server again. Bytes
// that the guard holds count in `memory`.
boost::asio::awaitable<std::optional<RelayEnd>> relay_guarded(boost::asio::ip::tcp::socket& client,
                                                              boost::asio::ip::tcp::socket& server,
                                                              FlowBytes& bytes, Bytes first,
                                                              modules::Guard& guard, modules::Memory& memory);

}  // namespace longhaul::flows
