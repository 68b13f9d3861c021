// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_lifetimes.h"

#include <catch2/catch.hpp>

#include "session_parts.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::testing;
using Unknown = StreamLifetimes::Unknown;

TEST_CASE("each side opens streams of its own numbers, and knows those that the other may open") {
  SessionParts dialler(Side::dialler), acceptor(Side::acceptor);
  CHECK(dialler.lifetimes.open(simulation::some_request()).id() == 1_stream);
  CHECK(dialler.lifetimes.open(simulation::some_request()).id() == 3_stream);
  CHECK(acceptor.lifetimes.open(simulation::some_request()).id() == 2_stream);
  CHECK(dialler.lifetimes.judge(5_stream) == Unknown::never_opened);
  CHECK(dialler.lifetimes.judge(3_stream) ==
        Unknown::ended);  // it is asked only about streams that are not live
  CHECK(dialler.lifetimes.judge(2_stream) == Unknown::begins);
  CHECK(acceptor.lifetimes.judge(1_stream) == Unknown::begins);
}

TEST_CASE("an incomplete stream is reset when its flow releases it, and forgotten when the peer has heard") {
  SessionParts parts;
  REQUIRE(parts.receive_open(1_stream));
  REQUIRE(parts.streams.find(1_stream));
  parts.lifetimes.release(1_stream);
  REQUIRE(parts.streams.find(1_stream));
  CHECK(parts.streams.find(1_stream)->entry().reset_pending);
  REQUIRE(parts.receive(ResetDoneFrame{1_stream}));
  CHECK_FALSE(parts.streams.find(1_stream));
  CHECK(parts.lifetimes.judge(1_stream) == Unknown::ended);
}

TEST_CASE("after the session's end a released stream is forgotten at once") {
  SessionParts parts;
  REQUIRE(parts.receive_open(1_stream));
  parts.lifetimes.session_is_over();
  parts.lifetimes.release(1_stream);
  CHECK(parts.streams.empty());
  parts.lifetimes.release(1_stream);  // and again
}

TEST_CASE("beyond the peer's limit streams are known for a while, but may not live") {
  SessionParts parts(Side::acceptor, 2);
  for (const auto id : {1_stream, 3_stream, 5_stream}) {
    const auto admitted = parts.lifetimes.admit(id);
    REQUIRE(admitted);
    parts.lifetimes.open_begins((*admitted)->entry());
    CHECK((*admitted)->entry().unopened);
    CHECK(parts.lifetimes.admits((*admitted)->entry()) == (id < 5_stream));
    CHECK_FALSE((*admitted)->entry().unopened);
  }
  std::uint64_t id = 7;
  while (parts.lifetimes.admit(StreamId(id))) {
    REQUIRE(id < 100'000);  // no peer may have any number of them
    id += 2;
  }
}
