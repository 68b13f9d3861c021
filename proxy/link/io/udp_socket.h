// SPDX-License-Identifier: Apache-2.0
// Opens UDP sockets for carriers, with the options of the kernel that they need.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <string>

#include "codecs/result.h"
#include "proxy/link/endpoint.h"

namespace longhaul::link::udp {

// Whether datagrams are sent from the address that the peer used, which matters when listening on several.
enum class UdpAnswers : std::uint8_t { by_route, from_address_used };

// Bound and non-blocking. `interface`: all datagrams leave and arrive there; empty: by the route.
Result<boost::asio::ip::udp::socket> open_udp_socket(boost::asio::io_context& io, const UdpAddress& at,
                                                     UdpAnswers answers, const std::string& interface);

}  // namespace longhaul::link::udp
