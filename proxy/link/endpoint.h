// SPDX-License-Identifier: Apache-2.0
// TCP and UDP endpoints: Asio's types without the socket headers, because this layer may not use sockets.
#pragma once
#include <boost/asio/ip/basic_endpoint.hpp>

namespace boost::asio::ip {
class tcp;
class udp;
}  // namespace boost::asio::ip

namespace longhaul::link {

using TcpAddress = boost::asio::ip::basic_endpoint<boost::asio::ip::tcp>;  // tcp::endpoint
using UdpAddress = boost::asio::ip::basic_endpoint<boost::asio::ip::udp>;  // udp::endpoint

}  // namespace longhaul::link
