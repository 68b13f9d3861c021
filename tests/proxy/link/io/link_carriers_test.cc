// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/link_carriers.h"

#include <catch2/catch.hpp>

#include "tls_sites.h"

namespace longhaul::link {
using namespace testing;
using longhaul::testing::run;

namespace {

// One site's carriers of a session, without the link that owns them.
struct Carrying final : CarrierOwner, SessionHost::Owner {
  Carrying(TlsSite& site, Side side) : of(site) {
    peer.name = "peer";
    host.begin({.side = side, .max_peer_streams = 64}, of.pool, of.retained, nullptr, Token{});
  }
  ~Carrying() override {
    carriers.forget_connections();
    carriers.udp().end();
  }

  // CarrierOwner and SessionHost::Owner
  void after_activity() override { host.deliver_events(); }
  void on_carrier_closed(CarrierId id, const std::string&, EndedBy) override {
    ++closed;
    carriers.forget(id);
  }
  void kick() override { carriers.kick(); }
  void on_opened(Stream& stream) override { opened.push_back(stream.id()); }
  void on_session_event(const Event&) override {}
  void on_failure(const std::string&) override {}
  bool keeps_streams() const override { return false; }

  Session& session() { return *host.session(); }
  LinkStatus status() const {
    LinkStatus status;
    carriers.fill(status);
    return status;
  }

  TlsSite& of;
  config::Peer peer;
  SessionHost host{of.io, *this};
  LinkCarriers carriers{of.shared, peer, host, *this};
  int closed = 0;
  std::vector<StreamId> opened;
};

struct BothCarrying {
  asio::io_context io;
  TlsSite near_site{io, "near"}, far_site{io, "far"};
  Carrying near{near_site, Side::dialler}, far{far_site, Side::acceptor};

  asio::awaitable<LinkCarriers::Attached> connect() {
    TlsPair pair = co_await connected(near_site, far_site);
    far.carriers.attach(std::move(pair.acceptor));
    co_return near.carriers.attach(std::move(pair.dialler));
  }
  asio::awaitable<void> say_something() {
    const StreamId id =
        near.session().open({.destination = {.host = "server", .port = 80}}, Clock::now()).id();
    near.carriers.kick();
    co_await until([this, id] { return far.session().find(id) != nullptr; });
  }
};

}  // namespace

TEST_CASE("LinkCarriers: a new connection replaces the one before, and the session continues on it") {
  BothCarrying both;
  run(both.io, [](BothCarrying& of) -> asio::awaitable<void> {
    CHECK_FALSE(of.near.carriers.connected());
    CHECK_FALSE(of.near.carriers.sends());
    const auto attached = co_await of.connect();
    CHECK(attached.remote.starts_with("127.0.0.1:"));
    CHECK(attached.handshake_time > Duration{0});
    CHECK(of.near.carriers.connected());
    CHECK(of.near.carriers.sends());
    const CarrierId first = of.near.session().preferred();
    co_await of.say_something();
    co_await of.connect();
    CHECK(of.near.session().preferred() > first);
    CHECK(of.near.status().carriers_attached == 2);
    CHECK_FALSE(of.near.carriers.forget(first));  // it is gone already
    co_await of.say_something();
    CHECK(of.far.opened.size() == 2);
    CHECK(of.near.status().carrier == "tcp");
    CHECK(of.near.status().bytes_sent > 0);
  }(both));
}

TEST_CASE("LinkCarriers: a link counts for the total rate while one of its carriers sends") {
  BothCarrying both;
  run(both.io, [](BothCarrying& of) -> asio::awaitable<void> {
    const TotalRate& total = of.near_site.shared.total_rate;
    of.near.carriers.choose();
    CHECK(total.links == 0);
    co_await of.connect();
    of.near.carriers.choose();
    of.near.carriers.choose();
    CHECK(total.links == 1);
    of.near.carriers.forget_connections();
    CHECK_FALSE(of.near.carriers.connected());
    CHECK_FALSE(of.near.carriers.sends());
    of.near.carriers.choose();
    CHECK(total.links == 0);
  }(both));
}

TEST_CASE(
    "LinkCarriers: a connection that fails by itself is told to the owner, and the next one takes over") {
  BothCarrying both;
  run(both.io, [](BothCarrying& of) -> asio::awaitable<void> {
    co_await of.connect();
    of.far.carriers.forget_connections();  // as a cut
    co_await until([&of] { return of.near.closed == 1; });
    CHECK_FALSE(of.near.carriers.connected());
    Stream& waits = of.near.session().open({.destination = {.host = "server", .port = 80}}, Clock::now());
    const StreamId id = waits.id();
    co_await of.connect();
    of.near.carriers.kick();
    co_await until([&of, id] { return of.far.session().find(id) != nullptr; });
  }(both));
}

TEST_CASE("LinkCarriers: when the daemon ends the peer hears it, and no carrier is chosen any more") {
  BothCarrying both;
  run(both.io, [](BothCarrying& of) -> asio::awaitable<void> {
    co_await of.connect();
    of.near.carriers.stop("the daemon ends");
    CHECK_FALSE(of.near.carriers.connected());
    CHECK_FALSE(of.near.carriers.choose());
    co_await until([&of] { return of.far.closed == 1; });
    CHECK(of.far.session().incoming().close_reason().text == "the daemon ends");
    CHECK(of.far.session().incoming().close_reason().code == CloseCode::shutting_down);
  }(both));
}

TEST_CASE("LinkCarriers: with the keys of a connection on which both have UDP, the session moves there") {
  BothCarrying both;
  run(both.io, [](BothCarrying& of) -> asio::awaitable<void> {
    const auto endpoint = [&](TlsSite& site) {
      auto opened = udp::UdpEndpoint::open(of.io, {asio::ip::make_address("127.0.0.1"), 0},
                                           udp::UdpEndpoint::Answers::by_route);
      REQUIRE(opened.has_value());
      site.shared.udp = std::move(*opened);
      return site.shared.udp.get();
    };
    udp::UdpEndpoint* here = endpoint(of.near_site);
    udp::UdpEndpoint* there = endpoint(of.far_site);
    TlsPair pair = co_await connected(of.near_site, of.far_site);
    const UdpAddress towards(asio::ip::make_address("127.0.0.1"), there->port());
    Agreed near{
        std::move(pair.dialler), Side::dialler, Token{}, {.endpoint = here, .epoch = 1, .peer = towards}, {}};
    Agreed far{std::move(pair.acceptor), Side::acceptor, Token{}, {.endpoint = there, .epoch = 1}, {}};
    // A measured line as short as loopback stays on TCP.
    of.near.peer.rate_bits = of.far.peer.rate_bits = 200'000'000;
    REQUIRE(of.near.carriers.begin_udp(near));
    REQUIRE(of.far.carriers.begin_udp(far));
    of.near.carriers.attach(std::move(near.connection));
    of.far.carriers.attach(std::move(far.connection));
    co_await until([&of] {
      of.near.carriers.choose();
      of.far.carriers.choose();
      return of.near.carriers.udp().carrying() && of.far.carriers.udp().carrying();
    });
    CHECK(of.near.status().carrier == "udp");
    co_await of.say_something();
    CHECK(of.near.status().udp.bytes_sent > 0);
  }(both));
}

}  // namespace longhaul::link
