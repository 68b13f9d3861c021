// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/peer_dial.h"

#include <catch2/catch.hpp>

#include "tls_sites.h"

namespace longhaul::link {
using namespace testing;
using asio::ip::tcp;
using longhaul::testing::run;

namespace {

Token token(unsigned of) {
  Token made;
  made.fill(std::byte(of));
  return made;
}

// What a link tells its dialling, and hears of it.
struct Host final : CarrierOwner, PeerDial::Host {
  Host(TlsSite& site, const TlsSite& other) : of(site), peer(other.as_peer()) {}
  ~Host() override { dial.stop(); }

  void after_activity() override {}
  void on_carrier_closed(CarrierId, const std::string&, EndedBy) override {}
  bool wants_connection() const override { return adopted.empty(); }
  Token resumable_session() const override { return resumable; }
  bool has_own_connection() const override { return own_connection; }
  asio::awaitable<bool> may_adopt(std::string key, Token session, bool resumes) override {
    asked.push_back({std::move(key), session, resumes});
    co_return adopts;
  }
  void adopt(Agreed agreed) override { adopted.push_back(std::move(agreed)); }

  struct Asked {
    std::string key;
    Token session;
    bool resumes;
  };

  TlsSite& of;
  config::Peer peer;
  Token resumable{};
  bool adopts = true, own_connection = false;
  std::vector<Asked> asked;
  std::vector<Agreed> adopted;
  udp::UdpPaths udp{of.io, "peer", *this};
  PeerDial dial{of.shared, peer, udp, *this};
};

struct DiallingSites {
  asio::io_context io;
  TlsSite near_site{io, "near"}, far_site{io, "far"};
  Host near{near_site, far_site}, far{far_site, near_site};
  tcp::acceptor listener{io, {asio::ip::make_address("127.0.0.1"), 0}};

  // `near` dials from here on.
  void start() {
    near.peer.address = config::HostPort{"127.0.0.1", listener.local_endpoint().port()};
    near.dial.start();
  }
  // The far side takes one connection, as its listener does.
  asio::awaitable<TlsConnection> accepted() {
    TlsConnection connection(co_await listener.async_accept(asio::use_awaitable), far_site.tls,
                             Side::acceptor,
                             [this](const std::string& key) { return far.dial.find_key(key); });
    if (!co_await connection.handshake(10s)) connection.end();
    co_return connection;
  }
  asio::awaitable<void> meet() {
    start();
    co_await far.dial.accept(co_await accepted());
    co_await until([this] { return !near.asked.empty(); });
  }
  // The test dials in the place of `near`, says something and gets the far side's answer.
  asio::awaitable<Result<Frame>> said_to_far(const Frame frame) {
    TlsPair pair = co_await connected(near_site, far_site);
    REQUIRE(co_await pair.dialler.write_frame(frame));
    const auto answer = co_await (pair.dialler.read_frame(10s) && far.dial.accept(std::move(pair.acceptor)));
    co_return answer;
  }
};

CloseCode close_code(const Result<Frame>& frame) {
  REQUIRE(frame.has_value());
  const auto* close = std::get_if<CloseFrame>(&*frame);
  REQUIRE(close);
  return close->code;
}

}  // namespace

TEST_CASE("PeerDial: both sides of a new connection agree on a new session") {
  DiallingSites sites;
  run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
    co_await of.meet();
    REQUIRE((of.near.adopted.size() == 1 && of.far.adopted.size() == 1));
    const Agreed &near = of.near.adopted[0], &far = of.far.adopted[0];
    CHECK(near.session == far.session);
    CHECK(near.session != Token{});
    CHECK((near.side == Side::dialler && far.side == Side::acceptor));
    CHECK((near.theirs.site == "far" && far.theirs.site == "near"));
    CHECK((near.udp.endpoint == nullptr && far.udp.endpoint == nullptr));  // the far side has no UDP
    CHECK((of.near.asked[0].key == of.far_site.key.fingerprint && !of.near.asked[0].resumes));
    CHECK(of.near.dial.last_error().empty());
    CHECK(of.near_site.shared.handshakes == 0);
  }(sites));
}

TEST_CASE("PeerDial: a session continues if both sides still have it, and only then") {
  const bool near_has_it = GENERATE(true, false), far_has_it = GENERATE(true, false);
  const bool resumes = near_has_it && far_has_it;
  DiallingSites sites;
  if (near_has_it) sites.near.resumable = token(5);
  if (far_has_it) sites.far.resumable = token(5);
  run(sites.io, [](DiallingSites& of, bool expected) -> asio::awaitable<void> {
    co_await of.meet();
    REQUIRE((of.near.asked.size() == 1 && of.far.asked.size() == 1));
    CHECK(of.near.asked[0].session == of.far.asked[0].session);
    CHECK((of.near.asked[0].session == token(5)) == expected);
    CHECK((of.near.asked[0].resumes == expected && of.far.asked[0].resumes == expected));
  }(sites, resumes));
}

TEST_CASE("PeerDial: sessions of the same length of life but another name do not continue") {
  DiallingSites sites;
  sites.near.resumable = token(5);
  sites.far.resumable = token(6);
  run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
    co_await of.meet();
    CHECK(of.near.asked[0].session == of.far.asked[0].session);
    CHECK((of.near.asked[0].session != token(5) && of.near.asked[0].session != token(6)));
    CHECK((!of.near.asked[0].resumes && !of.far.asked[0].resumes));
  }(sites));
}

TEST_CASE("PeerDial: a connection that its link does not want is not adopted") {
  DiallingSites sites;
  sites.far.adopts = false;
  run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
    co_await of.meet();
    CHECK(of.far.asked.size() == 1);
    CHECK(of.far.adopted.empty());
    CHECK(of.near.adopted.size() == 1);  // it learns so from the connection's end
  }(sites));
}

TEST_CASE("PeerDial: with UDP on both sides the two agree on an epoch, which rises, and on a cipher") {
  DiallingSites sites;
  run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
    auto endpoint = udp::UdpEndpoint::open(of.io, {asio::ip::make_address("127.0.0.1"), 0},
                                           udp::UdpEndpoint::Answers::by_route);
    REQUIRE(endpoint.has_value());
    of.far_site.shared.udp = std::move(*endpoint);
    co_await of.meet();
    REQUIRE((of.near.adopted.size() == 1 && of.far.adopted.size() == 1));
    const UdpTerms &near = of.near.adopted[0].udp, &far = of.far.adopted[0].udp;
    REQUIRE((near.endpoint && far.endpoint));
    CHECK((near.epoch == 1 && far.epoch == 1));
    CHECK(near.cipher == far.cipher);
    CHECK(near.peer == UdpAddress(asio::ip::make_address("127.0.0.1"), far.endpoint->port()));
    CHECK(far.peer.port() == 0);  // it learns that from the first packet
    of.near.adopted.clear();
    of.near.dial.wake();
    co_await of.far.dial.accept(co_await of.accepted());
    co_await until([&of] { return !of.near.adopted.empty(); });
    CHECK(of.near.adopted[0].udp.epoch == 2);
  }(sites));
}

TEST_CASE("PeerDial: the two agree on the paths that both name, with the dialler's numbers") {
  DiallingSites sites;
  run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
    auto endpoint = udp::UdpEndpoint::open(of.io, {asio::ip::make_address("127.0.0.1"), 0},
                                           udp::UdpEndpoint::Answers::by_route);
    REQUIRE(endpoint.has_value());
    of.far_site.shared.udp = std::move(*endpoint);
    const config::HostPort at{"127.0.0.1", of.listener.local_endpoint().port()};
    of.near.peer.paths = {{.name = "radio", .address = at},
                          {.name = "mpls", .address = at, .local = "127.0.0.1"},
                          {.name = "internet", .address = at, .local = "127.0.0.2"}};
    of.far.peer.paths = {{.name = "internet"}, {.name = "mpls"}, {.name = "fibre"}};
    co_await of.meet();
    REQUIRE((of.near.adopted.size() == 1 && of.far.adopted.size() == 1));
    const UdpTerms &near = of.near.adopted[0].udp, &far = of.far.adopted[0].udp;
    REQUIRE((near.paths.size() == 2 && far.paths.size() == 2));
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(near.paths[i].number == i + 1);
      CHECK((near.paths[i].number == far.paths[i].number && near.paths[i].name == far.paths[i].name));
      CHECK(near.paths[i].peer == UdpAddress(asio::ip::make_address("127.0.0.1"), at.port));
      CHECK(far.paths[i].endpoint == of.far_site.shared.udp.get());
    }
    CHECK(near.paths[0].endpoint->local().address() == asio::ip::make_address("127.0.0.1"));
    CHECK(near.paths[1].endpoint->local().address() == asio::ip::make_address("127.0.0.2"));
  }(sites));
}

TEST_CASE("PeerDial: with a peer that names no path there is one line") {
  DiallingSites sites;
  run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
    auto endpoint = udp::UdpEndpoint::open(of.io, {asio::ip::make_address("127.0.0.1"), 0},
                                           udp::UdpEndpoint::Answers::by_route);
    REQUIRE(endpoint.has_value());
    of.far_site.shared.udp = std::move(*endpoint);
    const config::HostPort at{"127.0.0.1", of.listener.local_endpoint().port()};
    of.near.peer.paths = {{.name = "mpls", .address = at},
                          {.name = "internet", .address = at, .local = "127.0.0.2"}};
    co_await of.meet();
    REQUIRE((of.near.adopted.size() == 1 && of.far.adopted.size() == 1));
    const UdpTerms &near = of.near.adopted[0].udp, &far = of.far.adopted[0].udp;
    CHECK((near.endpoint && far.endpoint && near.paths.empty() && far.paths.empty()));
    CHECK(of.far.adopted[0].theirs.paths == std::vector<std::string>{"mpls", "internet"});
    CHECK(of.near.adopted[0].theirs.paths.empty());
  }(sites));
}

TEST_CASE("PeerDial: what is wrong with a peer is said in words") {
  DiallingSites sites;
  SECTION("nobody listens") {
    sites.listener.close();
    sites.near.peer.address = config::HostPort{"127.0.0.1", 1};
    sites.near.dial.start();
    run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
      co_await until([&of] { return !of.near.dial.last_error().empty(); });
      CHECK_THAT(of.near.dial.last_error(), Catch::Contains("cannot connect to 127.0.0.1:1: "));
    }(sites));
  }
  SECTION("this site expects another key") {
    sites.near.peer.fingerprints = {"sha256:" + std::string(64, '0')};
    sites.start();
    run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
      (void)co_await of.accepted();
      co_await until([&of] { return !of.near.dial.last_error().empty(); });
      CHECK_THAT(of.near.dial.last_error(),
                 Catch::Contains("presented the key " + of.far_site.key.fingerprint));
    }(sites));
  }
  SECTION("the peer does not know the key of this site") {
    sites.far.peer.fingerprints = {"sha256:" + std::string(64, '0')};
    sites.start();
    run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
      (void)co_await of.accepted();
      co_await until([&of] { return !of.near.dial.last_error().empty(); });
      CHECK_THAT(of.near.dial.last_error(),
                 Catch::Contains("the peer rejected the key of this site, " + of.near_site.key.fingerprint));
    }(sites));
  }
  SECTION("the peer closes at once, and says why") {
    sites.start();
    run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
      TlsConnection connection = co_await of.accepted();
      connection.refuse(CloseCode::busy, "too busy today");
      co_await until([&of] { return !of.near.dial.last_error().empty(); });
      CHECK(of.near.dial.last_error() == "the peer refused the connection: too busy today");
    }(sites));
  }
  CHECK(sites.near.adopted.empty());
  CHECK(sites.far.adopted.empty());
}

TEST_CASE("PeerDial: a peer that speaks another protocol is refused, and nothing of it is adopted") {
  DiallingSites sites;
  SECTION("of another version") {
    run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
      const Frame hello = HelloFrame{.version = 2};
      const auto answer = co_await of.said_to_far(hello);
      CHECK(close_code(answer) == CloseCode::protocol_error);
    }(sites));
  }
  SECTION("without HELLO") {
    run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
      const Frame ping = PingFrame{1};
      const auto answer = co_await of.said_to_far(ping);
      CHECK_FALSE(answer.has_value());
      CHECK(of.far.dial.last_error() == "the peer did not send HELLO");
    }(sites));
  }
  CHECK(sites.far.asked.empty());
  CHECK(sites.far.adopted.empty());
}

TEST_CASE(
    "PeerDial: of two sides that dialled each other, the one with the lower fingerprint keeps its own") {
  DiallingSites sites;
  sites.far.own_connection = true;
  run(sites.io, [](DiallingSites& of) -> asio::awaitable<void> {
    const bool far_is_lower = of.far_site.key.fingerprint < of.near_site.key.fingerprint;
    const Frame hello = HelloFrame{.nonce = token(1)};
    const auto answer = co_await of.said_to_far(hello);
    if (far_is_lower) {
      CHECK(close_code(answer) == CloseCode::duplicate);
      CHECK(of.far.adopted.empty());
    } else {
      REQUIRE(answer.has_value());
      CHECK(std::holds_alternative<HelloFrame>(*answer));
      CHECK(of.far.adopted.size() == 1);
    }
  }(sites));
}

TEST_CASE("PeerDial: it ends at any moment while a connection is being made") {
  for (int turns = 0; turns < 40; ++turns) {
    auto sites = std::make_unique<DiallingSites>();
    sites->start();
    tcp::socket taken(sites->io);
    sites->listener.async_accept(taken, [](boost::system::error_code) {});
    for (int i = 0; i < turns; ++i) sites->io.poll_one();
    sites->near.dial.stop();
    sites->io.poll();
    CHECK(sites->near.adopted.empty());
  }
}

}  // namespace longhaul::link
