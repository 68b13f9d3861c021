// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/dialer.h"

#include "proxy/loopback.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;
using Check = DialRequest::Check;

namespace {

DialerConfig allowing(std::vector<std::string> networks) {
  DialerConfig config;
  for (const auto& text : networks) config.allow.push_back(config::parse_network(text).value());
  return config;
}

Destination at(const tcp::endpoint& server) {
  return {.host = "", .address = server.address(), .port = server.port()};
}

// Not written in place: g++ 12 destroys an aggregate twice that is built inside a co_await expression.
DialRequest request(Destination destination, Check check) {
  return {.destination = std::move(destination), .check = check};
}

}  // namespace

TEST_CASE("a listening server is reached over both families") {
  const auto* const address = GENERATE("127.0.0.1", "::1");
  asio::io_context io;
  run(io, [](const char* where) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    tcp::acceptor server(executor, tcp::endpoint(asio::ip::make_address(where), 0));
    Dialer dialer(allowing({where}));
    Dialled dialled = co_await dialer.dial(request(at(server.local_endpoint()), Check::peer));
    REQUIRE(dialled.outcome == ConnectOutcome::connected);
    CHECK(dialled.server == server.local_endpoint());
    CHECK_FALSE(dialled.source_fallback);
    tcp::socket accepted = co_await server.async_accept(asio::use_awaitable);
    CHECK(accepted.remote_endpoint() == dialled.socket.local_endpoint());
    tcp::no_delay no_delay;
    dialled.socket.get_option(no_delay);
    CHECK(no_delay.value());
  }(address));
}

TEST_CASE("a refused connection is reported as refused") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    tcp::acceptor server(co_await asio::this_coro::executor,
                         tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    const Destination gone = at(server.local_endpoint());
    server.close();
    Dialer dialer(allowing({}));
    const Dialled dialled = co_await dialer.dial(request(gone, Check::nothing));
    CHECK(dialled.outcome == ConnectOutcome::refused);
    CHECK_FALSE(dialled.socket.is_open());
  }());
}

TEST_CASE("a peer's destination is checked again after its name is resolved") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    tcp::acceptor server(co_await asio::this_coro::executor,
                         tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    const Destination localhost{.host = "localhost", .address = {}, .port = server.local_endpoint().port()};
    Dialer everything(allowing({"0.0.0.0/0", "::/0"}));
    const auto dialled1 = co_await everything.dial(request(localhost, Check::peer));
    CHECK(dialled1.outcome == ConnectOutcome::not_allowed);
    Dialer exactly(allowing({"127.0.0.1"}));
    const Dialled dialled = co_await exactly.dial(request(localhost, Check::peer));
    CHECK(dialled.outcome == ConnectOutcome::connected);
    CHECK(dialled.server == server.local_endpoint());
    const Destination literal{.host = "127.0.0.1", .address = {}, .port = localhost.port};
    const auto dialled2 = co_await everything.dial(request(literal, Check::peer));
    CHECK(dialled2.outcome == ConnectOutcome::not_allowed);
  }());
}

TEST_CASE("a name that does not exist is reported as unknown") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    Dialer dialer(allowing({"0.0.0.0/0"}));
    // RFC 6761 section 6.4: never resolves.
    const Destination nowhere{.host = "nowhere.invalid", .port = 1};
    const Dialled dialled = co_await dialer.dial(request(nowhere, Check::peer));
    CHECK(dialled.outcome == ConnectOutcome::name_not_found);
  }());
}

TEST_CASE("the dialer gives up on a silent server after the time limit") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    // A listener with a full queue drops further SYNs: silence without leaving loopback.
    tcp::acceptor server(executor);
    server.open(tcp::v4());
    server.bind(tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    server.listen(0);
    std::vector<tcp::socket> queue;
    for (int i = 0; i < 4; ++i) {
      queue.emplace_back(executor);
      queue.back().async_connect(server.local_endpoint(), [](error_code) {});
    }
    DialerConfig config = allowing({});
    config.connect_limit = 200ms;
    Dialer dialer(config);
    const Dialled dialled = co_await dialer.dial(request(at(server.local_endpoint()), Check::nothing));
    CHECK(dialled.outcome == ConnectOutcome::timed_out);
  }());
}

TEST_CASE("a client on another machine cannot reach loopback through the dialer") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    tcp::acceptor server(co_await asio::this_coro::executor,
                         tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    Dialer dialer(allowing({}));
    const tcp::endpoint elsewhere(asio::ip::make_address("192.0.2.1"), 5000);
    DialRequest wish = request(at(server.local_endpoint()), Check::client);
    wish.client = elsewhere;
    const auto dialled3 = co_await dialer.dial(wish);
    CHECK(dialled3.outcome == ConnectOutcome::not_allowed);
  }());
}

TEST_CASE("source = client never uses another address, source = auto does if it cannot use the client's") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    tcp::acceptor server(co_await asio::this_coro::executor,
                         tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    Dialer dialer(allowing({}));
    DialRequest wish = request(at(server.local_endpoint()), Check::nothing);
    wish.client = tcp::endpoint(asio::ip::make_address("fd00::9"), 5000);  // the other family
    wish.source = config::Source::client;
    const auto dialled4 = co_await dialer.dial(wish);
    CHECK(dialled4.outcome == ConnectOutcome::failed);
    wish.source = config::Source::automatic;
    const Dialled dialled = co_await dialer.dial(wish);
    CHECK(dialled.outcome == ConnectOutcome::connected);
    CHECK_FALSE(dialled.source_fallback);
  }());
}
