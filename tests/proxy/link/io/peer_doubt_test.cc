// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/peer_doubt.h"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

using namespace longhaul::link;

TEST_CASE("a doubt about the peer is confirmed once, unless it is over by then") {
  const bool over = GENERATE(false, true);
  boost::asio::io_context io;
  PeerDoubt doubt(io);
  int gone = 0;
  CHECK_FALSE(doubt.is_in_doubt());
  doubt.set(true);
  // The round trip counts too; a negative one makes the end of the time come at once.
  doubt.watch(std::chrono::seconds(-1), [&] {
    ++gone;
    CHECK_FALSE(doubt.is_in_doubt());
  });
  if (over) doubt.set(false);
  io.run();
  CHECK(gone == (over ? 0 : 1));
  CHECK_FALSE(doubt.is_in_doubt());
}

TEST_CASE("nobody is told of a doubt whose owner has stopped or is gone") {
  boost::asio::io_context io;
  int gone = 0;
  {
    PeerDoubt stopped(io), forgotten(io);
    stopped.set(true);
    forgotten.set(true);
    stopped.watch(std::chrono::seconds(1), [&] { ++gone; });
    forgotten.watch(std::chrono::seconds(-1), [&] { ++gone; });
    stopped.stop();
  }
  io.run();
  CHECK(gone == 0);
}
