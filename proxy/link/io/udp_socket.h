// SPDX-License-Identifier: Apache-2.0
// Opens UDP sockets for carriers, with the kernel options that they need.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <string>

#include "codecs/result.h"
#include "proxy/link/endpoint.h"

namespace longhaul::link::udp {

// Whether datagrams are sent from the address that the peer used, which matters if the socket listens on
// several.
enum class UdpAnswers : std::uint8_t { by_route, from_address_used };

// Returns a bound and non-blocking socket. `interface`: all datagrams use this interface; empty: by the
// routing table.
Result<boost::asio::ip::udp::socket> open_udp_socket(boost::asio::io_context& io, const UdpAddress& at,
                                                     UdpAnswers answers, const std::string& interface);

}  // namespace longhaul::link::udp
