// SPDX-License-Identifier: Apache-2.0
#include "proxy/listeners/forward_listener.h"

#include "proxy/loopback.h"

using namespace longhaul;
using namespace longhaul::listeners;
using namespace longhaul::testing;

TEST_CASE("a forward passes its clients on with the configured destination") {
  const auto* const address = GENERATE("127.0.0.1", "::1");
  asio::io_context io;
  std::vector<flows::Accepted> flows;
  ForwardListener listener(io, {.listen = {address, 0}, .to = {"files.example", 445}},
                           [&](flows::Accepted accepted) { flows.push_back(std::move(accepted)); });
  std::vector<tcp::socket> clients;
  for (int i = 0; i < 100; ++i) {
    clients.emplace_back(io);
    clients.back().connect(listener.local_endpoint());
  }
  while (flows.size() < clients.size() && io.run_one_for(10s) > 0) {
  }
  REQUIRE(flows.size() == clients.size());
  CHECK(flows[0].client == clients[0].local_endpoint());
  CHECK(flows[0].destination.to_text() == "files.example:445");
  CHECK(flows[0].origin == flows::Origin::forward);
  CHECK_FALSE(flows[0].answer);
  CHECK(listener.counters().accepted == 100);
}

TEST_CASE("a forward to an address needs no name resolution, and a mapped client counts as IPv4") {
  asio::io_context io;
  std::vector<flows::Accepted> flows;
  ForwardListener listener(io, {.listen = {"::", 0}, .to = {"10.2.0.1", 445}},
                           [&](flows::Accepted accepted) { flows.push_back(std::move(accepted)); });
  tcp::socket client(io);
  client.connect({asio::ip::address_v4::loopback(), listener.local_endpoint().port()});
  while (flows.empty() && io.run_one_for(10s) > 0) {
  }
  REQUIRE(flows.size() == 1);
  CHECK(flows[0].destination.host.empty());
  CHECK(flows[0].destination.address == asio::ip::make_address("10.2.0.1"));
  CHECK(flows[0].client == client.local_endpoint());
}

TEST_CASE("over the limit a connection is reset at once") {
  asio::io_context io;
  ForwardListener listener(
      io, {.listen = {"127.0.0.1", 0}, .to = {"10.2.0.1", 445}}, [](flows::Accepted) {},
      [](const asio::ip::address&) { return false; });
  run(io, [](ForwardListener& at) -> asio::awaitable<void> {
    tcp::socket client(co_await asio::this_coro::executor);
    co_await client.async_connect(at.local_endpoint(), asio::use_awaitable);
    const auto rest1 = co_await read_all(client);
    CHECK(rest1.error == asio::error::connection_reset);
    CHECK(at.counters().refused == 1);
  }(listener));
}

TEST_CASE("a listener that cannot be opened is reported with its entry and the reason") {
  asio::io_context io;
  const auto message = [&](config::HostPort at) -> std::string {
    try {
      ForwardListener listener(io, {.listen = at, .to = {"10.2.0.1", 445}}, [](flows::Accepted) {});
    } catch (const net::ListenerError& error) {
      return error.what();
    }
    return "";
  };
  tcp::acceptor taken(io, {asio::ip::address_v4::loopback(), 0});
  const std::string port = std::to_string(taken.local_endpoint().port());
  CHECK(message({"127.0.0.1", taken.local_endpoint().port()}) ==
        "[[forward]] listen: cannot listen on 127.0.0.1:" + port +
            ": another program already listens on port " + port +
            ", possibly another longhaul; ss -lntp shows which.");
  CHECK(message({"192.0.2.7", 8445}) ==
        "[[forward]] listen: cannot listen on 192.0.2.7:8445: 192.0.2.7 is not an address of this host.");
  CHECK(message({"files", 8445}).find("\"files\" is not an IP address") != std::string::npos);
}

TEST_CASE("closing a listener frees its port at once") {
  asio::io_context io;
  tcp::endpoint at;
  {
    ForwardListener listener(io, {.listen = {"127.0.0.1", 0}, .to = {"10.2.0.1", 445}},
                             [](flows::Accepted) {});
    at = listener.local_endpoint();
  }
  io.run_for(10s);  // the loop's coroutine ends, or this would take ten seconds
  CHECK_NOTHROW(tcp::acceptor(io, at));
}
