// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_inbox.h"

#include <catch2/catch.hpp>
#include <string>

#include "codecs/bytes.h"
#include "proxy/link/records.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace std::chrono_literals;

namespace {

struct OneInbox {
  OneInbox() { inbox.open(pool, session, 1 << 20, 1 << 20); }
  std::string message() {
    const auto body = inbox.poll_message();
    if (!body) return "none";
    (void)inbox.on_message_taken(*body, now, 40ms);
    return std::string(as_text(body->bytes()));
  }

  CreditPool pool{64 << 20, 100};
  SessionCredit session;
  StreamInbox inbox;
  TimePoint now{1h};
};

}  // namespace

TEST_CASE("messages keep their places between the bytes") {
  OneInbox one;
  REQUIRE(one.inbox.add(as_bytes("be"), one.now));
  REQUIRE(one.inbox.add(as_bytes("fore"), one.now));
  REQUIRE(one.inbox.add_message(as_bytes("first"), one.now));
  REQUIRE(one.inbox.add_message(as_bytes("second"), one.now));
  REQUIRE(one.inbox.charge(5, one.now));
  one.inbox.add(Slice::copy_of(as_bytes("after")));
  CHECK(one.inbox.bytes().size() == 11);
  CHECK(one.inbox.before_message() == 6);
  CHECK(one.message() == "none");
  (void)one.inbox.consume(6, one.now, 40ms);
  CHECK(one.inbox.before_message() == 0);
  CHECK(one.message() == "first");
  CHECK(one.message() == "second");
  CHECK(one.message() == "none");
  CHECK(one.inbox.before_message() == 5);
}

TEST_CASE("hundreds of messages come out in order, however they are mixed with reading") {
  OneInbox one;
  int added = 0, taken = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 10; ++i) REQUIRE(one.inbox.add_message(as_bytes(std::to_string(added++)), one.now));
    for (int i = 0; i < 9; ++i) REQUIRE(one.message() == std::to_string(taken++));
  }
  while (taken < added) REQUIRE(one.message() == std::to_string(taken++));
  CHECK(one.message() == "none");
}

TEST_CASE("bytes and messages use credit until the flow has taken them") {
  OneInbox one;
  REQUIRE(one.inbox.add(Buffer(1000), one.now));
  REQUIRE(one.inbox.add_message(Buffer(100), one.now));
  CHECK(one.pool.unread_bytes() == 1000 + message_cost(100));
  (void)one.inbox.consume(1000, one.now, 40ms);
  CHECK(one.pool.unread_bytes() == message_cost(100));
  (void)one.message();
  CHECK(one.pool.unread_bytes() == 0);
}

TEST_CASE("the peer is told when much of its credit is free again") {
  OneInbox one;
  REQUIRE(one.inbox.add(Buffer(1 << 20), one.now));
  CHECK_FALSE(one.inbox.consume(1, one.now, 40ms));
  CHECK(one.inbox.consume((1 << 20) - 1, one.now, 40ms));
}

TEST_CASE("more than the credit is the peer's error, and nothing is stored") {
  OneInbox one;
  CHECK(one.inbox.add(Buffer((1 << 20) + 1), one.now).error() == LinkError::credit_exceeded);
  REQUIRE(one.inbox.add(Buffer((1 << 20) - 50), one.now));
  CHECK(one.inbox.add_message({}, one.now).error() == LinkError::credit_exceeded);
  CHECK(one.inbox.bytes().size() == (1 << 20) - 50);
  CHECK(one.inbox.before_message() == (1 << 20) - 50);
}

TEST_CASE("a closed inbox is empty and has given its credit back") {
  OneInbox one;
  CHECK(one.pool.granted_bytes() > 0);
  REQUIRE(one.inbox.add(Buffer(1000), one.now));
  REQUIRE(one.inbox.add_message(Buffer(100), one.now));
  one.inbox.close();
  CHECK(one.inbox.bytes().empty());
  CHECK(one.message() == "none");
  CHECK(one.inbox.credit() == nullptr);
  CHECK(one.pool.granted_bytes() == 0);
  CHECK(one.pool.unread_bytes() == 0);
  CHECK_FALSE(one.inbox.consume(0, one.now, 40ms));
}
