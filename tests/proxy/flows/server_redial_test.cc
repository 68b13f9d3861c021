// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/server_redial.h"

#include "lan_pair.h"
#include "proxy/modules/connect_ahead.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;
using For = ServerRedial::For;
using Pump = LanSide::Pump;

namespace {

constexpr modules::ConnectAhead kRepeatAll{.feature = "probe.ahead",
                                           .may_repeat = [](Bytes) { return true; },
                                           .is_answer = [](Bytes) { return true; }};

// A far flow in use; `client` is the server's end of the connection.
struct ServedFlow : LanPair {
  ServerRedial redial{*lan};
  int dials = 0;

  ServedFlow() {
    lan->up = lan->down = Pump::running;
    redial.allow([this] { ++dials; });
  }
  void begin_trial(std::string_view said) {
    lan->begin_trial(kRepeatAll);
    SliceQueue queue;
    queue.push_copy(as_bytes(said));
    REQUIRE(lan->send(queue).sent == LanSide::Sent::some);
  }
  void fail_trial() {
    REQUIRE(lan->make_stale());
    redial.for_trial();
  }
  // A new connection: this side's end of it; the server's end is in `client`.
  tcp::socket connection() {
    tcp::socket here(io);
    io.restart();
    run(io, [](ServedFlow& at, tcp::socket& into) -> asio::awaitable<void> {
      SocketPair pair = co_await socket_pair();
      at.client = std::move(pair.near);
      into = std::move(pair.far);
    }(*this, here));
    return here;
  }
  std::string heard_by_server() {
    std::array<char, 100> room;
    return {room.data(), client.read_some(asio::buffer(room))};
  }
};

}  // namespace

TEST_CASE("a module may have its server connected again once, and says everything anew") {
  ServedFlow flow;
  CHECK(flow.redial.is_allowed());
  flow.redial.for_module();
  CHECK(flow.dials == 1);
  CHECK_FALSE(flow.redial.is_allowed());
  CHECK_FALSE(flow.redial.renews());
  CHECK(flow.lan->up == Pump::held);
  CHECK(flow.lan->down == Pump::held);
  CHECK(flow.redial.dialled(true) == For::module);
  CHECK(flow.redial.use(flow.connection(), For::module));
  CHECK(flow.lan->up == Pump::running);
  CHECK(flow.lan->down == Pump::running);
  CHECK_FALSE(flow.lan->has_preface());
}

TEST_CASE("after a failed trial the server hears again what it was told") {
  ServedFlow flow;
  flow.begin_trial("GET");
  flow.fail_trial();
  CHECK(flow.redial.renews());
  flow.redial.for_trial();  // each end of the old connection may say that it is of no use
  CHECK(flow.dials == 1);
  CHECK(flow.redial.is_allowed());  // a module may still ask
  CHECK(flow.redial.dialled(false) == For::trial);
  CHECK_FALSE(flow.redial.renews());
  CHECK(flow.redial.use(flow.connection(), For::trial));
  CHECK(flow.lan->up == Pump::running);
  CHECK(flow.heard_by_server() == "GET");
}

TEST_CASE(
    "a module that asks while a trial's connection is on its way gets that one, without what was said") {
  ServedFlow flow;
  flow.begin_trial("GET");
  flow.fail_trial();
  flow.redial.for_module();
  CHECK(flow.dials == 1);
  CHECK(flow.redial.dialled(true) == For::module);
  CHECK_FALSE(flow.redial.renews());
  CHECK(flow.redial.use(flow.connection(), For::module));
  CHECK_FALSE(flow.lan->is_stale());
  asio::write(flow.client, asio::buffer("!", 1));
  flow.lan->wait_to_read();
  flow.until([&] { return flow.user.readable == 1; });
  CHECK(flow.lan->receive(10).size == 1);
  CHECK(flow.client.available() == 0);
}

TEST_CASE("a server that is not reached again leaves the flow without a connection and without a trial") {
  ServedFlow flow;
  flow.begin_trial("GET");
  flow.fail_trial();
  const For whom = flow.redial.dialled(false);
  CHECK(whom == For::trial);
  CHECK_FALSE(flow.redial.use(tcp::socket(flow.io), whom));
  CHECK_FALSE(flow.lan->is_stale());
  CHECK(flow.lan->up == Pump::held);
  CHECK_FALSE(flow.redial.use(tcp::socket(flow.io), For::module));
}
