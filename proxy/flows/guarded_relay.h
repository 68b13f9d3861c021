// SPDX-License-Identifier: Apache-2.0
// The relay for a flow outside the link that a module's guard reads (proxy/modules/guard.h): passes bytes
// through the guard until it steps aside; the plain relay carries the rest.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>

#include "proxy/flows/flow_table.h"
#include "proxy/flows/relay.h"
#include "proxy/modules/guard.h"
#include "proxy/modules/memory.h"

namespace longhaul::flows {

// As Relay::run. Nothing: the guard has stepped aside, all that it put out is with the kernel, and both
// sockets are as they were; ends that the client or the server said before are met again by who reads on.
// What the guard holds counts in `memory`.
boost::asio::awaitable<std::optional<RelayEnd>> relay_guarded(boost::asio::ip::tcp::socket& client,
                                                              boost::asio::ip::tcp::socket& server,
                                                              FlowBytes& bytes, Bytes first,
                                                              modules::Guard& guard, modules::Memory& memory);

}  // namespace longhaul::flows
