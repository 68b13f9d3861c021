// SPDX-License-Identifier: Apache-2.0
#include "proxy/listeners/socks5.h"

#include <optional>

#include "proxy/loopback.h"

using namespace longhaul;
using namespace longhaul::listeners;
using namespace longhaul::testing;
using namespace std::string_literals;

namespace {

const std::string kHello = "\x05\x01\x00"s;
const std::string kToFiles =
    "\x05\x01\x00\x03\x0d"
    "files.example\x01\xbd"s;

struct Proxy {
  explicit Proxy(asio::io_context& io, Socks5Limits limits = {})
      : listener(
            io, {"127.0.0.1", 0}, [this](flows::Accepted accepted) { taken.push_back(std::move(accepted)); },
            {}, limits) {}
  std::vector<flows::Accepted> taken;
  Socks5Listener listener;
};

asio::awaitable<tcp::socket> client_of(Proxy& proxy) {
  tcp::socket client(co_await asio::this_coro::executor);
  co_await client.async_connect(proxy.listener.local_endpoint(), asio::use_awaitable);
  co_return client;
}

asio::awaitable<void> taken(Proxy& proxy, std::size_t flows) {
  while (proxy.taken.size() < flows) co_await asio::post(asio::use_awaitable);
}

// What a client that says `words` hears until the proxy ends the connection.
std::string heard(const std::string& words) {
  asio::io_context io;
  Proxy proxy(io);
  std::string all;
  run(io, [](Proxy& to, std::string say, std::string& hear) -> asio::awaitable<void> {
    tcp::socket client = co_await client_of(to);
    co_await write(client, say);
    client.shutdown(tcp::socket::shutdown_send);
    const Rest rest = co_await read_all(client);
    hear = rest.text;
    CHECK(to.taken.empty());
    CHECK(rest.error == asio::error::eof);
  }(proxy, words, all));
  return all;
}

}  // namespace

TEST_CASE("a SOCKS5 flow is passed on with the bytes after the request unchanged") {
  asio::io_context io;
  Proxy proxy(io);
  run(io, [](Proxy& to) -> asio::awaitable<void> {
    tcp::socket client = co_await client_of(to);
    co_await write(client, kHello + kToFiles + "early bytes");
    co_await taken(to, 1);
    flows::Accepted& flow = to.taken[0];
    CHECK(flow.destination.to_text() == "files.example:445");
    CHECK(flow.client == client.local_endpoint());
    CHECK(flow.origin == flows::Origin::socks);
    const std::string early = co_await read_exactly(flow.socket, 11);
    CHECK(early == "early bytes");
    const std::string chosen = co_await read_exactly(client, 2);
    CHECK(chosen == "\x05\x00"s);
    CHECK(flow.answer(flows::ConnectOutcome::refused)[1] == 5);
  }(proxy));
}

TEST_CASE("a SOCKS5 handshake may arrive byte by byte") {
  asio::io_context io;
  Proxy proxy(io);
  run(io, [](Proxy& to) -> asio::awaitable<void> {
    tcp::socket client = co_await client_of(to);
    client.set_option(tcp::no_delay(true));
    for (const char byte : kHello + kToFiles) {
      co_await write(client, std::string(1, byte));
      co_await asio::post(asio::use_awaitable);
    }
    co_await taken(to, 1);
    CHECK(to.taken[0].destination.host == "files.example");
  }(proxy));
}

TEST_CASE("unsupported SOCKS5 requests are refused with the right code") {
  CHECK(heard("\x05\x01\x02"s) == "\x05\xff"s);
  CHECK(heard(kHello + "\x05\x02\x00\x01\x0a\x02\x00\x01\x01\xbd"s).substr(2, 2) == "\x05\x07"s);
  CHECK(heard(kHello + "\x05\x03\x00\x01\x0a\x02\x00\x01\x01\xbd"s).substr(2, 2) == "\x05\x07"s);
  CHECK(heard(kHello + "\x05\x01\x00\x09\x00"s).substr(2, 2) == "\x05\x08"s);
  CHECK(heard(kHello + "\x05\x01\x00\x03\x01 \x00\x50"s).substr(2, 2) == "\x05\x01"s);
}

TEST_CASE("clients of other protocols are told which protocol the port speaks") {
  CHECK(heard("\x04\x01\x00\x50\x0a\x02\x00\x01\x00"s) == "\x00\x5b\x00\x00\x00\x00\x00\x00"s);
  CHECK(heard("GET / HTTP/1.1\r\n\r\n").find("This port speaks SOCKS5") != std::string::npos);
}

TEST_CASE("a client that ends before its request leaves nothing behind") {
  asio::io_context io;
  Proxy proxy(io);
  run(io, [](Proxy& to) -> asio::awaitable<void> {
    tcp::socket client = co_await client_of(to);
    co_await write(client, kHello + kToFiles.substr(0, 9));
    const std::string chosen = co_await read_exactly(client, 2);
    CHECK(chosen.size() == 2);
    CHECK(to.listener.handshakes() == 1);
    client.close();
    while (to.listener.handshakes() > 0) co_await asio::post(asio::use_awaitable);
    CHECK(to.taken.empty());
  }(proxy));
}

TEST_CASE("a client that does not send its request in time is reset") {
  asio::io_context io;
  Proxy proxy(io, {.handshake = 20ms});
  run(io, [](Proxy& to) -> asio::awaitable<void> {
    tcp::socket client = co_await client_of(to);
    co_await write(client, kHello);
    const Rest rest = co_await read_all(client);
    CHECK(rest.text == "\x05\x00"s);
    CHECK(rest.error == asio::error::connection_reset);
    while (to.listener.handshakes() > 0) co_await asio::post(asio::use_awaitable);
  }(proxy));
}

TEST_CASE("handshakes over the limit are reset, and later ones are accepted again") {
  asio::io_context io;
  Proxy proxy(io, {.handshakes = 1});
  run(io, [](Proxy& to) -> asio::awaitable<void> {
    tcp::socket first = co_await client_of(to);
    co_await write(first, kHello);
    const std::string chosen = co_await read_exactly(first, 2);
    CHECK(chosen.size() == 2);
    tcp::socket second = co_await client_of(to);
    const Rest rest = co_await read_all(second);
    CHECK(rest.error == asio::error::connection_reset);
    co_await write(first, kToFiles);
    co_await taken(to, 1);
    tcp::socket third = co_await client_of(to);
    co_await write(third, kHello + kToFiles);
    co_await taken(to, 2);
  }(proxy));
}

TEST_CASE("a client at its own limit of handshakes is reset, and others are served") {
  asio::io_context io;
  Proxy proxy(io, {.handshakes_per_source = 1});
  run(io, [](Proxy& to) -> asio::awaitable<void> {
    tcp::socket first = co_await client_of(to);
    co_await write(first, kHello);
    const std::string chosen = co_await read_exactly(first, 2);
    CHECK(chosen.size() == 2);
    tcp::socket second = co_await client_of(to);
    const Rest rest = co_await read_all(second);
    CHECK(rest.error == asio::error::connection_reset);
    tcp::socket other(co_await asio::this_coro::executor,
                      tcp::endpoint(asio::ip::make_address("127.0.0.2"), 0));
    co_await other.async_connect(to.listener.local_endpoint(), asio::use_awaitable);
    co_await write(other, kHello + kToFiles);
    co_await taken(to, 1);
  }(proxy));
}

TEST_CASE("a SOCKS5 listener that closes resets its handshakes and frees its port") {
  asio::io_context io;
  std::optional<Proxy> proxy(std::in_place, io);
  run(io, [](std::optional<Proxy>& to) -> asio::awaitable<void> {
    tcp::socket client = co_await client_of(*to);
    co_await write(client, kHello);
    const std::string chosen = co_await read_exactly(client, 2);
    CHECK(chosen.size() == 2);
    const tcp::endpoint at = to->listener.local_endpoint();
    to.reset();
    const Rest rest = co_await read_all(client);
    CHECK(rest.error == asio::error::connection_reset);
    CHECK_NOTHROW(tcp::acceptor(client.get_executor(), at));
  }(proxy));
}
