// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/received_batch.h"

#include <boost/asio/buffer.hpp>
#include <catch2/catch.hpp>
#include <string>

#include "codecs/bytes.h"
#include "proxy/link/io/udp_socket.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
namespace asio = boost::asio;

TEST_CASE("one call reads what the socket has, with sender, destination and time of each message") {
  asio::io_context io;
  const UdpAddress loopback(asio::ip::make_address("127.0.0.1"), 0);
  auto sender = open_udp_socket(io, loopback, UdpAnswers::by_route, {});
  auto socket = open_udp_socket(io, loopback, UdpAnswers::from_address_used, {});
  REQUIRE((sender.has_value() && socket.has_value()));
  ReceivedBatch batch;
  CHECK(batch.receive(socket->native_handle()) == 0);

  // On loopback a datagram has arrived when the call that sends it returns.
  for (const std::string text : {"one", "second"})
    sender->send_to(asio::buffer(text), socket->local_endpoint());
  std::string read;
  const std::size_t got = batch.receive(socket->native_handle());
  REQUIRE(got > 0);
  REQUIRE(got < ReceivedBatch::kMessages);
  for (std::size_t i = 0; i < got; ++i) {
    CHECK_FALSE(batch.truncated(i));
    CHECK(batch.from(i) == sender->local_endpoint());
    const DatagramInfo info = batch.info(i);
    CHECK(info.to == loopback.address());
    CHECK(info.arrived.has_value());
    read += as_text(batch.bytes(i));
  }
  CHECK(read == "onesecond");
  CHECK(batch.receive(socket->native_handle()) == 0);
}
