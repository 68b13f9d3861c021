// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_socket.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
namespace asio = boost::asio;

TEST_CASE("a socket is bound to its address and does not block, in both families") {
  asio::io_context io;
  for (const char* text : {"127.0.0.1", "::1", "0.0.0.0", "::"}) {
    INFO(text);
    const auto address = asio::ip::make_address(text);
    for (UdpAnswers answers : {UdpAnswers::by_route, UdpAnswers::from_address_used}) {
      auto socket = open_udp_socket(io, {address, 0}, answers, {});
      REQUIRE(socket.has_value());
      CHECK(socket->non_blocking());
      CHECK(socket->local_endpoint().address() == address);
      CHECK(socket->local_endpoint().port() != 0);
    }
  }
}

TEST_CASE("an address of another host, or an interface that is not there, is an error") {
  asio::io_context io;
  const UdpAddress elsewhere(asio::ip::make_address("192.0.2.1"), 0);
  const UdpAddress here(asio::ip::make_address("127.0.0.1"), 0);
  CHECK(open_udp_socket(io, elsewhere, UdpAnswers::by_route, {}).has_error());
  CHECK(open_udp_socket(io, here, UdpAnswers::by_route, "no-such-if").has_error());
}
