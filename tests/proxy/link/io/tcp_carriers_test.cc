// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/tcp_carriers.h"

#include <catch2/catch.hpp>

#include "tls_sites.h"

namespace longhaul::link {
using namespace testing;
using longhaul::testing::run;

namespace {

// A session of one site on connections to the other, and what the carriers said.
struct CarriedSession final : CarrierOwner {
  CarriedSession(TlsSite& site, Side side)
      : of(site),
        session({.side = side, .max_peer_streams = 64}, of.pool, of.retained, nullptr, Clock::now()) {}
  void after_activity() override {
    while (session.poll_event()) {
    }
  }
  void on_carrier_closed(CarrierId id, const std::string& why, EndedBy by) override {
    closed.emplace_back(id, by);
    reasons.push_back(why);
    carriers.forget(id, &session);
  }
  CarrierId add(TlsConnection connection) {
    const CarrierId id = ++last;
    auto carrier =
        std::make_unique<TcpCarrier>(id, std::move(connection), session, *this, 0, of.shared.total_rate);
    session.attach(id, Clock::now(), 1ms);
    carrier->start();
    carriers.add(std::move(carrier));
    return id;
  }
  LinkStatus status() const {
    LinkStatus status;
    carriers.fill(status);
    return status;
  }

  TlsSite& of;
  Session session;
  TcpCarriers carriers;
  CarrierId last;
  std::vector<std::pair<CarrierId, EndedBy>> closed;
  std::vector<std::string> reasons;
};

struct BothCarried {
  asio::io_context io;
  TlsSite near_site{io, "near"}, far_site{io, "far"};
  CarriedSession near{near_site, Side::dialler}, far{far_site, Side::acceptor};

  asio::awaitable<void> connect() {
    TlsPair pair = co_await connected(near_site, far_site);
    near.add(std::move(pair.dialler));
    far.add(std::move(pair.acceptor));
  }
  // Bytes cross, on whatever carrier the session prefers.
  asio::awaitable<void> say_something() {
    Stream& stream = near.session.open({.destination = {.host = "server", .port = 80}}, Clock::now());
    const StreamId id = stream.id();
    near.carriers.kick();
    co_await until([this, id] { return far.session.find(id) != nullptr; });
  }
};

}  // namespace

TEST_CASE("TcpCarriers: the newest connection is named, and all that there were have carried their bytes") {
  BothCarried both;
  run(both.io, [](BothCarried& of) -> asio::awaitable<void> {
    CHECK(of.near.carriers.newest() == kNoCarrier);
    of.near.carriers.kick();  // nothing
    CHECK(of.near.status().carrier.empty());
    co_await of.connect();
    CHECK(of.near.carriers.newest() == CarrierId(1));
    co_await of.say_something();
    const std::uint64_t first = of.near.status().bytes_sent;
    CHECK(first > 0);
    co_await of.connect();
    CHECK(of.near.carriers.newest() == CarrierId(2));
    CHECK(of.near.status().carriers_attached == 2);
    CHECK(of.near.status().carrier == "tcp");
    CHECK(of.near.status().remote_address.starts_with("127.0.0.1:"));
    co_await of.say_something();
    const std::uint64_t both_sent = of.near.status().bytes_sent;
    CHECK(both_sent > first);
    of.near.carriers.forget_all(&of.near.session);
    CHECK(of.near.carriers.empty());
    CHECK(of.near.session.preferred() == kNoCarrier);
    CHECK(of.near.status().bytes_sent >= both_sent);
    CHECK(of.near.status().carriers_attached == 2);
  }(both));
}

TEST_CASE("TcpCarriers: one that failed is forgotten once, and the session continues on the other") {
  BothCarried both;
  run(both.io, [](BothCarried& of) -> asio::awaitable<void> {
    co_await of.connect();
    co_await of.connect();
    CHECK(of.near.session.preferred() == CarrierId(2));
    CHECK(of.near.carriers.forget(CarrierId(2), &of.near.session));
    CHECK_FALSE(of.near.carriers.forget(CarrierId(2), &of.near.session));
    CHECK_FALSE(of.near.carriers.forget(CarrierId(7), &of.near.session));
    CHECK(of.near.session.preferred() == CarrierId(1));
    CHECK(of.near.carriers.newest() == CarrierId(1));
    // The other end hears that it is gone, without a reason.
    co_await until([&of] { return !of.far.closed.empty(); });
    CHECK(of.far.closed.front().first == CarrierId(2));
    co_await of.say_something();
  }(both));
}

TEST_CASE("TcpCarriers: the other end learns why the connections are closed") {
  BothCarried both;
  run(both.io, [](BothCarried& of) -> asio::awaitable<void> {
    co_await of.connect();
    of.near.carriers.close_all(CloseCode::shutting_down, "enough for today", &of.near.session);
    CHECK(of.near.carriers.empty());
    CHECK(of.near.session.preferred() == kNoCarrier);
    co_await until([&of] { return !of.far.closed.empty(); });
    CHECK(of.far.closed.front() == std::pair(CarrierId(1), EndedBy::peer));
    CHECK(of.far.session.incoming().close_reason().code == CloseCode::shutting_down);
    CHECK(of.far.session.incoming().close_reason().text == "enough for today");
    CHECK(of.near.closed.empty());  // who closes one is not told of it
  }(both));
}

}  // namespace longhaul::link
