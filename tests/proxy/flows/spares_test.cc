// SPDX-License-Identifier: Apache-2.0
// Connections ahead between a Dialer and servers of the test: when one is made, who gets it, and what ends
// it.
#include "proxy/flows/spares.h"

#include "proxy/loopback.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;
using namespace std::chrono_literals;

namespace {

constexpr auto kFar = Spares::kFarAway;

struct SparesBench {
  asio::io_context io;
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
  Dialer dialer{{.allow = {*config::parse_network("127.0.0.1")}}};
  std::shared_ptr<modules::Memory> memory = std::make_shared<modules::Memory>(10 << 20);
  Spares spares{io, dialer, memory};

  Spares::Key key(std::string client = "10.0.0.1", std::string server = "server") const {
    return {.peer = "branch", .client = asio::ip::make_address(client), .destination = std::move(server)};
  }
  DialRequest request() const {
    const auto server = acceptor.local_endpoint();
    return {.destination = {.host = "", .address = server.address(), .port = server.port()}};
  }
  asio::awaitable<void> until(std::function<bool()> done) {
    asio::steady_timer soon(io);
    while (!done()) {
      soon.expires_after(1ms);
      co_await soon.async_wait(asio::use_awaitable);
    }
  }
  // The server's end of one that is ready.
  asio::awaitable<tcp::socket> made() {
    const auto before = spares.counters().made;
    spares.client_connected(key(), request(), kFar);
    tcp::socket server = co_await acceptor.async_accept(asio::use_awaitable);
    co_await until([&] { return spares.counters().made == before + 1; });
    co_return server;
  }
};

}  // namespace

TEST_CASE("a client that has connected to a distant server finds its next connection ready, once") {
  SparesBench bench;
  run(bench.io, [](SparesBench& b) -> asio::awaitable<void> {
    CHECK_FALSE(b.spares.take(b.key(), b.request()).has_value());
    tcp::socket server = co_await b.made();
    b.spares.client_connected(b.key(), b.request(), kFar);  // it has one
    CHECK(b.spares.size() == 1);
    CHECK_FALSE(b.spares.take(b.key("10.0.0.2"), b.request()).has_value());
    CHECK_FALSE(b.spares.take(b.key("10.0.0.1", "other"), b.request()).has_value());
    auto taken = b.spares.take(b.key(), b.request());
    REQUIRE(taken.has_value());
    CHECK(taken->socket.local_endpoint() == server.remote_endpoint());
    CHECK(taken->server == b.acceptor.local_endpoint());
    co_await write(taken->socket, "hello");
    const auto got = co_await read_exactly(server, 5);
    CHECK(got == "hello");
    CHECK_FALSE(b.spares.take(b.key(), b.request()).has_value());
    CHECK(b.spares.counters().used == 1);
  }(bench));
}

TEST_CASE("a server nearby gets no connection ahead") {
  SparesBench bench;
  bench.spares.client_connected(bench.key(), bench.request(), kFar - 1us);
  CHECK(bench.spares.size() == 0);
}

TEST_CASE("a server that closes a connection ahead, or speaks on it, ends it") {
  SparesBench bench;
  const bool of_speech = GENERATE(false, true);
  // Whether the loop has noticed it, or only the flow that comes at that moment.
  const bool before_flow = GENERATE(false, true);
  run(bench.io, [](SparesBench& b, bool speaks, bool is_noticed) -> asio::awaitable<void> {
    tcp::socket server = co_await b.made();
    if (speaks)
      co_await write(server, "HTTP/1.1 408 Request Timeout\r\n\r\n");
    else
      server.close();
    if (is_noticed) {
      co_await b.until([&] { return b.spares.size() == 0; });
    }
    CHECK_FALSE(b.spares.take(b.key(), b.request()).has_value());
    CHECK(b.spares.counters().lost == 1);
    CHECK(b.spares.counters().used == 0);
    co_await b.until([&] { return b.spares.size() == 0; });
  }(bench, of_speech, before_flow));
}

TEST_CASE("a connection ahead that may not be dialled any more is not used") {
  SparesBench bench;
  run(bench.io, [](SparesBench& b) -> asio::awaitable<void> {
    tcp::socket server = co_await b.made();
    b.dialer.allow({});
    DialRequest forbidden = b.request();
    forbidden.may_dial = [](const asio::ip::address&) { return false; };
    CHECK_FALSE(b.spares.take(b.key(), forbidden).has_value());
    const Rest rest = co_await read_all(server);
    CHECK(rest.error == asio::error::eof);
  }(bench));
}

TEST_CASE("connections ahead are closed when what they depend on changes, also one that is being made") {
  SparesBench bench;
  run(bench.io, [](SparesBench& b) -> asio::awaitable<void> {
    CHECK_FALSE(b.spares.clear());
    b.spares.client_connected(b.key(), b.request(), kFar);
    CHECK(b.spares.clear());
    tcp::socket never = co_await b.acceptor.async_accept(asio::use_awaitable);
    const Rest rest = co_await read_all(never);
    CHECK(rest.error == asio::error::eof);
    CHECK(b.spares.counters().made == 0);
    tcp::socket server = co_await b.made();
    CHECK(b.spares.clear());
    const Rest second = co_await read_all(server);
    CHECK(second.error == asio::error::eof);
  }(bench));
}

TEST_CASE(
    "after a connection ahead that nobody used, the next is made for a client that connects twice in a row") {
  SparesBench bench;
  run(bench.io, [](SparesBench& b) -> asio::awaitable<void> {
    tcp::socket server = co_await b.made();
    const Rest rest = co_await read_all(server);  // after kLifetime
    CHECK(rest.error == asio::error::eof);
    co_await b.until([&] { return b.spares.counters().unused == 1; });
    b.spares.client_connected(b.key(), b.request(), kFar);
    CHECK(b.spares.size() == 0);
    b.spares.client_connected(b.key(), b.request(), kFar);
    CHECK(b.spares.size() == 1);
  }(bench));
}

TEST_CASE("connections ahead are bounded for each client, each server, and in all") {
  SparesBench bench;
  const auto ask = [&](int client, int server) {
    bench.spares.client_connected(
        bench.key("10.0." + std::to_string(client / 200) + "." + std::to_string(client % 200 + 1),
                  "server-" + std::to_string(server)),
        bench.request(), kFar);
    return bench.spares.size();
  };
  for (int i = 0; i < 20; ++i) ask(1, i);
  CHECK(bench.spares.size() == Spares::kMostOfClient);
  for (int i = 0; i < 40; ++i) ask(100 + i, 1000);
  CHECK(bench.spares.size() == Spares::kMostOfClient + Spares::kMostOfServer);
  for (int i = 0; i < 1000; ++i) ask(200 + i, 2000 + i);
  CHECK(bench.spares.size() == Spares::kMost);
  // The habits are bounded, too: a client that is not known then gets none, the others do.
  bench.spares.clear();
  for (int i = 0; i < 10000; ++i) {
    ask(200 + i, 20000 + i);
    bench.spares.clear();
  }
  CHECK(ask(99, 99) == 0);
  CHECK(ask(200, 20000) == 1);
  bench.spares.clear();
}

TEST_CASE("connections ahead and what is known of clients count in the modules' memory, and wait for it") {
  SparesBench bench;
  const auto ask = [&](int client) {
    bench.spares.client_connected(bench.key("10.0.0." + std::to_string(client)), bench.request(), kFar);
    return bench.spares.size();
  };
  CHECK(bench.memory->used_bytes() == 0);
  CHECK(ask(1) == 1);
  const auto one = bench.memory->used_bytes();
  CHECK(one > 0);
  CHECK(ask(2) == 2);
  CHECK(bench.memory->used_bytes() == 2 * one);
  bench.memory->add(10 << 20);
  CHECK(ask(3) == 2);
  CHECK(bench.memory->used_bytes() == (10 << 20) + 2 * one);  // not even a habit
  bench.memory->remove(10 << 20);
  CHECK(ask(3) == 3);
  bench.spares.clear();
  const auto habits = bench.memory->used_bytes();
  CHECK(habits > 0);
  CHECK(habits < 3 * one);
  bench.spares.start_anew();
  CHECK(bench.memory->used_bytes() == 0);
}
