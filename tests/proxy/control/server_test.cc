// SPDX-License-Identifier: Apache-2.0
// Tests the control API's listener against clients that are strangers, slow, large, many or wrong.
#include "proxy/control/server.h"

#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "proxy/control/admission.h"
#include "proxy/control/http_client.h"

using namespace longhaul::control;
using namespace std::chrono_literals;
using boost::asio::ip::make_address;
using boost::asio::ip::tcp;

TEST_CASE("changes need the token, reads do not, and a wrong token never passes") {
  RunningApi api;
  api.start();
  HttpClient client{api.endpoint()};
  const auto with = [&](http::verb method, const std::string& authorization) {
    return HttpClient{api.endpoint()}.ask(method, "/v1/features", R"({"compression": false})",
                                          {{http::field::authorization, authorization}});
  };
  CHECK(client.get("/v1/features").status == 200);
  CHECK(client.ask(http::verb::post, "/v1/features", R"({"compression": false})").status == 401);
  CHECK(with(http::verb::post, "Bearer wrong").status == 401);
  CHECK(with(http::verb::patch, "Bearer " + kTestToken + "0").status == 401);
  CHECK(with(http::verb::post, "Basic " + kTestToken).status == 401);
  CHECK(with(http::verb::post, kTestToken).status == 401);
  CHECK(with(http::verb::get, "Bearer wrong").status == 401);
  CHECK(api.on_loop([&] { return api.daemon.in_force.compression; }));
  CHECK(with(http::verb::post, "Bearer " + kTestToken).status == 200);
  CHECK_FALSE(api.on_loop([&] { return api.daemon.in_force.compression; }));
  CHECK(with(http::verb::patch, "bearer " + kTestToken).status == 200);
}

TEST_CASE("only requests whose Host names the listener itself are answered") {
  const tcp::endpoint local{make_address("10.1.1.1"), 7601};
  for (const auto* host : {"localhost:7601", "LocalHost:7601", "127.0.0.1:7601", "127.9.9.9:7601",
                           "[::1]:7601", "10.1.1.1:7601"})
    CHECK(host_is_ours(host, local));
  for (const auto* host :
       {"", "localhost", "localhost:80", "evil.example:7601", "localhost.evil.example:7601", "10.1.1.2:7601",
        "::1:7601", "[::1]", "[::1:7601", "[127.0.0.1]:7601", "127.0.0.1:7601 ",
        "127.0.0.1:", "127.0.0.1:07601x", "127.0.0.1:73137", "[::1]7601", "127.0.0.1@evil:7601"})
    CHECK_FALSE(host_is_ours(host, local));
  CHECK(host_is_ours("[fd00::1]:7601", {make_address("fd00::1"), 7601}));
  CHECK(host_is_ours("localhost", {make_address("127.0.0.1"), 80}));
}

TEST_CASE("a request with a foreign Host, or none, or two, is refused") {
  RunningApi api;
  api.start();
  const auto ask = [&](const std::string& headers) {
    HttpClient client{api.endpoint()};
    client.send("GET /v1/status HTTP/1.1\r\n" + headers + "\r\n");
    return client.read();
  };
  CHECK(ask("Host: 127.0.0.1:" + api.port() + "\r\n").status == 200);
  CHECK(ask("Host: evil.example:" + api.port() + "\r\n").status == 403);
  CHECK(ask("Host: evil.example\r\n").status == 403);
  CHECK(ask("").status == 400);
  CHECK(ask("Host: 127.0.0.1:" + api.port() + "\r\nHost: evil.example\r\n").status == 400);
}

TEST_CASE("an unknown path gives 404, and a wrong method gets the list of allowed ones") {
  RunningApi api;
  api.start();
  for (const auto* path :
       {"/page", "/v1", "/v1/", "/v2/status", "/v1/statusx", "/v1/flow", "/metrics/", "/v1/../metrics"})
    CHECK(get(api, path).status == 404);
  const auto reply = HttpClient{api.endpoint()}.ask(http::verb::delete_, "/v1/features");
  CHECK(reply.status == 405);
  CHECK(reply.allow == "GET, HEAD, PATCH, POST");
  CHECK(get(api, "/v1/clear-cache").status == 405);
  CHECK(post(api, "/v1/status", "{}").status == 405);
  CHECK(HttpClient{api.endpoint()}.ask(http::verb::options, "/v1/features").status == 405);
}

TEST_CASE("one connection serves many requests, also pipelined, and closes when asked") {
  RunningApi api;
  api.start();
  HttpClient client{api.endpoint()};
  for (int i = 0; i < 5; ++i) {
    const auto reply = client.get("/v1/features");
    CHECK(reply.status == 200);
    CHECK(reply.keep_alive);
  }
  const auto request = "GET /v1/features HTTP/1.1\r\nHost: localhost:" + api.port() + "\r\n";
  client.send(request + "\r\n" + request + "Connection: close\r\n\r\n");
  CHECK(client.read().status == 200);
  const auto last = client.read();
  CHECK(last.status == 200);
  CHECK_FALSE(last.keep_alive);
  CHECK(client.ends_cleanly());
  CHECK(api.counters().accepted == 1);
}

TEST_CASE("HEAD has the headers of GET and no body") {
  RunningApi api;
  api.start();
  HttpClient client{api.endpoint()};
  CHECK(client.ask(http::verb::head, "/v1/features").status == 200);
  CHECK(client.get("/v1/features").status == 200);  // the next answer begins where it should
}

TEST_CASE("oversized headers and bodies are refused before they are buffered") {
  RunningApi api;
  api.start();
  HttpClient headers{api.endpoint()};
  headers.send("GET /v1/status HTTP/1.1\r\nX-Long: " + std::string(9000, 'x'));
  auto reply = headers.read();
  CHECK(reply.status == 431);
  CHECK_FALSE(reply.keep_alive);

  HttpClient body{api.endpoint()};
  const auto head = "POST /v1/features HTTP/1.1\r\nHost: localhost:" + api.port() +
                    "\r\nAuthorization: Bearer " + kTestToken + "\r\n";
  body.send(head + "Content-Length: 1000000000\r\n\r\n");
  reply = body.read();
  CHECK(reply.status == 413);
  CHECK(reply.error().find("16384") != std::string::npos);

  HttpClient chunked{api.endpoint()};
  chunked.send(head + "Transfer-Encoding: chunked\r\n\r\n4001\r\n" + std::string(0x4001, ' ') +
               "\r\n0\r\n\r\n");
  CHECK(chunked.read().status == 413);
}

TEST_CASE("the server does not wait for the body of a request without the token") {
  RunningApi api;
  api.start();
  HttpClient client{api.endpoint()};
  client.send("POST /v1/features HTTP/1.1\r\nHost: localhost:" + api.port() +
              "\r\nContent-Length: 100\r\n\r\n");
  const auto reply = client.read();
  CHECK(reply.status == 401);
  CHECK_FALSE(reply.keep_alive);
}

TEST_CASE("input that is not HTTP is refused and the connection closed, also byte by byte") {
  RunningApi api;
  api.start();
  const auto bytes = GENERATE(
      as<std::string>{}, "\x16\x03\x01\x02\x01\x01\x01\xfc\x03\x03 a TLS client\r\n\r\n", "GET\r\n\r\n",
      "GET /v1/status HTTP/9.9\r\n\r\n", "GET /v1/status HTTP/1.1\r\nno colon\r\n\r\n",
      "GET /v1/status HTTP/1.1\r\nContent-Length: x\r\n\r\n");
  HttpClient whole{api.endpoint()};
  whole.send(bytes);
  CHECK(whole.read().status == 400);
  HttpClient slow{api.endpoint()};
  boost::system::error_code error;
  for (const char byte : bytes) boost::asio::write(slow.socket(), boost::asio::buffer(&byte, 1), error);
  CHECK(slow.read().status == 400);
}

TEST_CASE("a client that does not finish its request is disconnected") {
  RunningApi api({.header_time = 100ms, .body_time = 100ms});
  api.start();
  HttpClient header{api.endpoint()};
  header.send("GET /v1/status HTTP/1.1\r\nHost: ");
  CHECK(header.ends_cleanly());
  HttpClient body{api.endpoint()};
  body.send("POST /v1/features HTTP/1.1\r\nHost: localhost:" + api.port() + "\r\nAuthorization: Bearer " +
            kTestToken + "\r\nContent-Length: 10\r\n\r\n{");
  CHECK(body.ends_cleanly());
  HttpClient silent{api.endpoint()};
  CHECK(silent.ends_cleanly());
}

TEST_CASE("a client that does not read its answers is disconnected, and others are served meanwhile") {
  RunningApi api({.answer_time = 200ms});
  for (int i = 0; i < 1000; ++i) api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:445");
  api.start();
  HttpClient client{api.endpoint()};
  client.socket().set_option(boost::asio::socket_base::receive_buffer_size(4096));
  std::string requests;
  for (int i = 0; i < 60; ++i)
    requests += "GET /v1/flows?limit=1000 HTTP/1.1\r\nHost: localhost:" + api.port() + "\r\n\r\n";
  client.send(requests);
  while (api.counters().requests == 0) std::this_thread::yield();
  CHECK(get(api, "/v1/features").status == 200);
  // Sixty answers of half a megabyte fit no socket buffer, so the end of the connection is the time limit's
  // doing.
  while (api.counters().connections > 0) std::this_thread::yield();
  CHECK(api.counters().requests < 61);
}

TEST_CASE("connections over the limit are refused with a sentence, and accepted again after one ends") {
  RunningApi api({.connections = 2});
  api.start();
  {
    HttpClient first{api.endpoint()}, second{api.endpoint()};
    CHECK(first.get("/v1/features").status == 200);
    CHECK(second.get("/v1/features").status == 200);
    HttpClient third{api.endpoint()};
    const auto reply = third.read();
    CHECK(reply.status == 503);
    CHECK_FALSE(reply.error().empty());
    CHECK(third.ends_cleanly());
    CHECK(first.get("/v1/features").status == 200);
  }
  while (api.counters().connections > 0) std::this_thread::yield();
  CHECK(get(api, "/v1/features").status == 200);
  CHECK(api.counters().turned_away == 1);
}

TEST_CASE("the API shuts down at once with idle, waiting and half-sent connections") {
  auto api = std::make_unique<RunningApi>();
  api->start();
  HttpClient idle{api->endpoint()}, half{api->endpoint()}, fresh{api->endpoint()};
  idle.get("/v1/features");
  half.send("GET /v1");
  const auto begin = std::chrono::steady_clock::now();
  api.reset();  // returns when `run` has completed
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  CHECK(idle.ends_cleanly());
}

TEST_CASE("every request from another machine needs the token") {
  FakeDaemon daemon;
  Api api{daemon, kTestToken};
  Request request;
  request.target = "/v1/status";
  request.host = "10.1.1.1:7601";
  request.local = {make_address("10.1.1.1"), 7601};
  request.remote = {make_address("10.1.1.2"), 40000};
  REQUIRE(api.refuse(request));
  CHECK(api.refuse(request)->status == http::status::unauthorized);
  request.authorization = "Bearer " + kTestToken;
  CHECK_FALSE(api.refuse(request));
}

TEST_CASE("the API listens on IPv6 too") {
  RunningApi api({}, "::1");
  api.start();
  HttpClient client{api.endpoint()};
  client.send("GET /v1/features HTTP/1.1\r\nHost: [::1]:" + api.port() + "\r\n\r\n");
  CHECK(client.read().status == 200);
}

TEST_CASE("a port in use is reported with address and reason") {
  RunningApi first;
  boost::asio::io_context loop;
  FakeDaemon daemon;
  const auto listen = [&](std::string host, std::uint16_t port) {
    return Server(loop, daemon, kTestToken, {std::move(host), port}).endpoint();
  };
  CHECK_THROWS_WITH(listen("127.0.0.1", first.endpoint().port()),
                    Catch::Contains("127.0.0.1:" + first.port()) && Catch::Contains("already in use") &&
                        Catch::Contains("[control] listen"));
  CHECK_THROWS_WITH(listen("192.0.2.1", 0), Catch::Contains("cannot listen at 192.0.2.1:0"));
}
