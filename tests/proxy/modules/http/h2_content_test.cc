// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/content.h"

#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http::h2 {
namespace {

constexpr std::size_t kWindow = 65'535;

// A request with content whose client may send one window of it: what arrives is taken, and nothing else
// happens.
struct Upload {
  Client client;
  Peer near_client{Session::Role::server}, near_server{Session::Role::client};
  Content content{near_client.session, near_server.session, {}};
  Exchange exchange;

  Upload() {
    client.session.announce({}, 0);
    near_client.session.announce({}, 0);
    near_client.reads = false;
    exchange.client = client.sends("PUT", "/page", std::string(3 * kWindow, 'x'));
    move();
  }
  std::size_t arrived() { return near_client.messages[exchange.client].content.size(); }
  void move() {
    for (int round = 0; round < 2; ++round) {
      std::string up = client.out();
      REQUIRE(near_client.take(up));
      std::string down = near_client.out();
      REQUIRE(client.take(down));
    }
  }
};

TEST_CASE("http/2 content: a sender may send more as soon as its content was sent on") {
  Upload one;
  REQUIRE(one.arrived() == kWindow);
  one.content.take_up(one.exchange, bytes_of(std::string(kWindow, 'x')));
  one.move();
  CHECK(one.arrived() == kWindow);
  CHECK(one.content.up_bytes() == kWindow);
  one.content.on_sent_up(one.exchange, 50'000);
  one.move();
  CHECK(one.arrived() == kWindow + 50'000);
  CHECK(one.content.up_bytes() == kWindow - 50'000);
}

TEST_CASE("http/2 content: what the receiver does not want any more makes room, too") {
  Upload one;
  one.content.take_up(one.exchange, bytes_of(std::string(kWindow, 'x')));
  one.content.drop_up(one.exchange);
  CHECK(one.exchange.up.bytes() == 0);
  CHECK(one.content.up_bytes() == 0);
  one.move();
  CHECK(one.arrived() == 2 * kWindow);
}

TEST_CASE("http/2 content: what waits is counted, without what the store had") {
  Upload one;
  one.content.take_down(one.exchange, bytes_of("response"));
  CHECK(one.content.down_bytes() == 8);
  CHECK(one.exchange.down.bytes() == 8);
  one.content.on_sent_down(one.exchange, 3);
  CHECK(one.content.down_bytes() == 5);
  one.exchange.down.pieces.drop_until(3);
  one.content.drop_down(one.exchange);
  CHECK(one.content.down_bytes() == 0);
  one.exchange.is_from_store = true;
  one.exchange.down.add_copy(bytes_of("stored"));
  one.content.on_sent_down(one.exchange, 2);
  CHECK(one.content.down_bytes() == 0);
  one.content.drop_down(one.exchange);
  CHECK(one.content.down_bytes() == 0);
  CHECK(one.exchange.down.bytes() == 0);
}

TEST_CASE("http/2 content: an exchange that is over waits no longer") {
  Upload one;
  one.content.take_up(one.exchange, bytes_of("rest"));
  one.content.forget(one.exchange);
  CHECK(one.content.up_bytes() == 0);
}

}  // namespace
}  // namespace longhaul::http::h2
