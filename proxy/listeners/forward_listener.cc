// SPDX-License-Identifier: Apache-2.0
#include "proxy/listeners/forward_listener.h"

#include "proxy/config/network.h"

namespace longhaul::listeners {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

flows::Destination destination_of(const config::HostPort& to) {
  flows::Destination destination{.port = to.port};
  boost::system::error_code not_a_literal;
  const auto address = asio::ip::make_address(to.host, not_a_literal);
  if (not_a_literal) {
    destination.host = to.host;
  } else {
    destination.address = config::unmapped(address);
  }
  return destination;
}

}  // namespace

ForwardListener::ForwardListener(asio::io_context& io, const config::Forward& forward,
                                 flows::FlowStarter start, net::AcceptLoop::HasRoom has_room)
    : loop_(
          net::open_listener(io, forward.listen, "[[forward]] listen"),
          [start = std::move(start), destination = destination_of(forward.to)](tcp::socket socket,
                                                                               tcp::endpoint client) {
            client.address(config::unmapped(client.address()));
            start({.socket = std::move(socket),
                   .client = client,
                   .destination = destination,
                   .origin = flows::Origin::forward});
          },
          std::move(has_room)) {}

}  // namespace longhaul::listeners
