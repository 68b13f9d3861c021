// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/lan_side.h"

#include "lan_pair.h"
#include "proxy/flows/late_reset.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;

TEST_CASE("a flow's socket gives bytes, nothing, the end, or a failure, and counts what passed") {
  LanPair at;
  CHECK(at.lan->receive(100).got == LanSide::Got::nothing);
  asio::write(at.client, asio::buffer("hello", 5));
  at.lan->wait_to_read();
  CHECK(at.lan->up == LanSide::Pump::waiting);
  at.until([&] { return at.user.readable == 1; });
  CHECK(at.lan->up == LanSide::Pump::running);
  const auto some = at.lan->receive(3);  // no more than there is room for
  CHECK(some.got == LanSide::Got::bytes);
  CHECK(some.size == 3);
  CHECK(at.lan->receive(100).size == 2);
  CHECK(at.bytes.lan_in == 5);
  SECTION("the end") {
    at.client.shutdown(tcp::socket::shutdown_send);
    at.lan->wait_to_read();
    at.until([&] { return at.user.readable == 2; });
    CHECK(at.lan->receive(100).got == LanSide::Got::end);
  }
  SECTION("a reset") {
    reset(at.client);
    at.lan->wait_to_read();
    at.until([&] { return at.user.readable == 2; });
    CHECK(at.lan->receive(100).got == LanSide::Got::failure);
  }
}

TEST_CASE("a reset is noticed while nothing is read from the client") {
  LanPair at;
  at.lan->up = LanSide::Pump::running;
  at.lan->watch_for_failure();
  at.lan->watch_for_failure();  // once is enough
  reset(at.client);
  at.until([&] { return at.user.failed == 1; });
}

TEST_CASE("a slow client holds up its flow until it reads, and all arrives") {
  LanPair at;
  at.fill();
  CHECK(at.lan->down == LanSide::Pump::waiting);
  CHECK_FALSE(at.lan->has_delivered());
  const std::uint64_t sent = at.bytes.lan_out;
  CHECK(sent > 0);
  at.until([&] {
    at.drain_client();
    return at.user.writable == 1;
  });
  CHECK(at.lan->down == LanSide::Pump::running);
}

TEST_CASE("waits that end after their flow is gone call nobody") {
  LanPair at;
  at.fill();
  at.lan->wait_to_read();
  at.lan->watch_for_failure();
  at.lan.reset();
  at.io.restart();
  at.io.run();
  CHECK(at.user.readable + at.user.writable + at.user.failed == 0);
}

TEST_CASE("a late reset follows delivery: at once, or when a slow client has read") {
  LanPair at;
  int resets = 0;
  LateReset late(*at.lan);
  SECTION("nothing waits") {
    late.after_delivery([&] { ++resets; });
    CHECK(resets == 1);
    CHECK_FALSE(late.waits());
  }
  SECTION("a slow client") {
    at.fill();
    late.after_delivery([&] { ++resets; });
    CHECK(resets == 0);
    CHECK(late.waits());
    at.until([&] {
      at.drain_client();
      return resets == 1;
    });
  }
}

TEST_CASE("a late reset is forgotten with its flow, and replaced when all was delivered before the limit") {
  int resets = 0;
  SECTION("forgotten") {
    LanPair at;
    {
      LateReset late(*at.lan);
      late.in_the_end([&] { ++resets; });
      CHECK(late.waits());
      at.lan.reset();
    }
    at.io.restart();
    at.io.run();
    CHECK(resets == 0);
  }
  SECTION("replaced") {
    LanPair at;
    LateReset late(*at.lan);
    late.in_the_end([&] { resets += 100; });
    late.after_delivery([&] { ++resets; });
    CHECK(resets == 1);
  }
}

TEST_CASE("what a client that has reset its connection did not get is not waited for") {
  LanPair at;
  at.fill();
  CHECK_FALSE(at.lan->has_delivered());
  at.client.set_option(asio::socket_base::linger(true, 0));
  at.client.close();
  LateReset late(*at.lan);
  bool is_reset = false;
  late.after_delivery([&] { is_reset = true; });
  at.until([&] { return at.lan->has_delivered(); });
  at.until([&] { return is_reset; });
}
