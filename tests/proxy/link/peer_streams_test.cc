// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/peer_streams.h"

#include <catch2/catch.hpp>

#include "numbers.h"

using namespace longhaul::link;

TEST_CASE("the side that dialled opens odd streams, the other side even ones") {
  CHECK(PeerStreams(Side::acceptor, 1).opens(3_stream));
  CHECK_FALSE(PeerStreams(Side::acceptor, 1).opens(4_stream));
  CHECK(PeerStreams(Side::dialler, 1).opens(4_stream));
  CHECK_FALSE(PeerStreams(Side::dialler, 1).opens(3_stream));
}

TEST_CASE("a peer may have some streams beyond the limit, until it knows that they are refused") {
  PeerStreams streams(Side::dialler, 10);
  const StreamId ended{2};
  for (int i = 0; i < 10; ++i) CHECK(streams.begin());
  CHECK(streams.within_limit());
  CHECK(streams.begin());
  CHECK_FALSE(streams.within_limit());
  streams.end(ended);
  CHECK(streams.ended(ended));
  CHECK_FALSE(streams.ended(4_stream));
  CHECK(streams.within_limit());
  int more = 0;
  while (streams.begin()) ++more;
  CHECK(more == 8192);
}

TEST_CASE("unfinished OPENs and gaps between the peer's streams are limited") {
  PeerStreams streams(Side::dialler, 10);
  for (int i = 0; i < 4096; ++i) streams.open_begins();
  CHECK_FALSE(streams.too_many_unopened());
  streams.open_begins();
  CHECK(streams.too_many_unopened());
  streams.open_is_read();
  CHECK_FALSE(streams.too_many_unopened());
  std::uint64_t id = 0;
  for (int i = 0; i < 65'546; ++i) {
    REQUIRE(streams.begin());
    streams.end(StreamId(id += 4));
  }
  CHECK_FALSE(streams.too_many_gaps());
  REQUIRE(streams.begin());
  streams.end(StreamId(id + 4));
  CHECK(streams.too_many_gaps());
}
