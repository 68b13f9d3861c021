// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/session_codec.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::link;

namespace {

std::unique_ptr<reduction::Reduction> codec() {
  return std::make_unique<reduction::Reduction>(
      reduction::Options{.ring_bytes = 16 << 20, .peer_ring_bytes = 16 << 20, .epoch = 1});
}

struct Driven {
  void encode(std::size_t bytes) {
    const Buffer plain(bytes, std::byte{'x'});
    Buffer out;
    REQUIRE(codec.codec()->encode(1, {.dedup_memory = true, .compression = true}, plain, out));
  }
  std::uint64_t blocks() const {
    LinkStatus status;
    codec.fill(status);
    return status.reduction.encoder.blocks;
  }

  boost::asio::io_context io;
  int kicks = 0;
  SessionCodec codec{io, [this] { ++kicks; }};
};

}  // namespace

TEST_CASE("session codec: without one nothing is reduced, and every call is harmless") {
  Driven driven;
  driven.codec.begin(nullptr);
  driven.codec.work();
  driven.codec.on_second();
  driven.codec.relieve_processor();
  driven.codec.set_rights({});
  driven.codec.finish();
  CHECK(driven.codec.finished());
  CHECK(driven.codec.clear() == 0);
  CHECK(driven.codec.cleared_by_peer() == 0);
  CHECK(driven.codec.memory_bytes() == 0);
  LinkStatus status;
  driven.codec.fill(status);
  CHECK_FALSE(status.reduces);
  CHECK(driven.io.run() == 0);
  CHECK(driven.kicks == 0);
}

TEST_CASE("session codec: totals outlive the sessions, and their memory does not") {
  Driven driven;
  for (int session = 1; session <= 3; ++session) {
    driven.codec.begin(codec());
    driven.encode(10'000);
    CHECK(driven.blocks() == static_cast<std::uint64_t>(session));
    driven.codec.end();
    CHECK(driven.blocks() == static_cast<std::uint64_t>(session));
    CHECK(driven.codec.memory_bytes() == 0);
  }
}

TEST_CASE("session codec: both dictionaries are cleared, and the peer is told") {
  Driven driven;
  driven.codec.begin(codec());
  BlockCodec& here = *driven.codec.codec();
  const auto peer = codec();
  const auto exchange = [&] {
    for (bool any = true; any;) {
      any = false;
      for (; const auto message = here.poll_message(); any = true) REQUIRE(peer->on_message(message->bytes()));
      for (; const auto message = peer->poll_message(); any = true) REQUIRE(here.on_message(message->bytes()));
    }
  };
  exchange();  // a dictionary begins when both sides have said how much they keep
  driven.encode(50'000);
  CHECK(driven.codec.clear() >= 50'000);
  CHECK(driven.kicks == 1);
  CHECK(driven.codec.codec()->has_message());
  exchange();
  CHECK(driven.codec.cleared_by_peer() == 0);  // it has no disk
  CHECK(driven.codec.clear() == 0);
}

TEST_CASE("session codec: work that waits in the loop does not outlive its session") {
  Driven driven;
  driven.codec.begin(codec());
  driven.encode(50'000);
  driven.codec.finish();
  CHECK(driven.kicks == 1);
  driven.codec.end();
  driven.io.run();
  CHECK(driven.kicks == 1);
}
