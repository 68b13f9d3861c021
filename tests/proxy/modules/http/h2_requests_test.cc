// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/requests.h"

#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http::h2 {
namespace {

// A client and a server, and the near half's connections with them, between which only requests are passed
// on.
struct Between {
  std::shared_ptr<Site> site = std::make_shared<Site>(1 << 20);
  Place place{{}, "x"};
  Receiving receiving{site, place, {}};
  LocalAnswers answers{place, site, &receiving};
  Exchanges exchanges;
  Client client;
  Peer near_client{Session::Role::server}, near_server{Session::Role::client}, server{Session::Role::server};
  Requests requests{place, answers, exchanges, near_client.session, near_server.session};
  Requests::TimePoint now{std::chrono::hours(1)};

  Between() {
    site->wall = [] { return Seconds(1'700'000'000); };
    for (Session* session : {&client.session, &near_client.session, &near_server.session, &server.session})
      session->announce({}, 0);
    near_client.on_message = [this](StreamId stream, Peer::Message& message) {
      requests.open(now, stream, std::exchange(message.head, {}), message.ended);
    };
  }
  StreamId asks(const std::string& path) {
    const StreamId stream = client.asks(path, {}, "https");
    run();
    return stream;
  }
  void run() {
    for (int round = 0; round < 4; ++round) {
      move(client, near_client);
      move(near_server, server);
      move(server, near_server);
      move(near_client, client);
    }
  }
  static void move(Peer& from, Peer& to) {
    std::string bytes = from.out();
    REQUIRE(to.take(bytes));
  }
  // The server has answered that request, for a minute.
  void store(Exchange& exchange, const std::string& content) {
    ResponseHead head{.minor = 1, .status = 200, .phrase = {}, .fields = {}};
    head.fields.add({"cache-control", "max-age=60"});
    head.fields.add({"etag", "\"1\""});
    answers.begin_to_store(now, exchange, head);
    REQUIRE(exchange.incoming);
    REQUIRE(exchange.incoming->add(bytes_of(content)));
    exchange.incoming->store();
    exchange.incoming.reset();
  }
};

TEST_CASE("http/2 requests: one is asked, answered from the store while that is fresh, then asked about") {
  Between all;
  const StreamId first = all.asks("/page");
  REQUIRE(all.server.messages.size() == 1);
  CHECK(all.server.messages[1].head.value(":path") == "/page");
  Exchange* const exchange = all.exchanges.of_client(first);
  REQUIRE((exchange && exchange->server == 1));
  all.store(*exchange, "content");
  const StreamId second = all.asks("/page");
  CHECK(all.client.messages[second].head.value(":status") == "200");
  CHECK(all.client.messages[second].content == "content");
  CHECK(all.client.messages[second].ended);
  CHECK(all.server.messages.size() == 1);
  all.now += std::chrono::seconds(61);
  all.asks("/page");
  REQUIRE(all.server.messages.size() == 2);
  CHECK(all.server.messages[3].head.value("if-none-match") == "\"1\"");
}

TEST_CASE(
    "http/2 requests: those that the server has had already keep the client's names for their streams") {
  Between all;
  all.requests.begin_late();
  all.client.session.use_next(7);
  const StreamId late = all.asks("/late");
  CHECK(late == 7);
  CHECK(all.server.messages.count(7) == 1);
  all.requests.end_late();
}

TEST_CASE("http/2 requests: without a server, only what the store answers is not refused") {
  Between all;
  Exchange* const exchange = all.exchanges.of_client(all.asks("/page"));
  REQUIRE(exchange);
  all.store(*exchange, "content");
  CHECK_FALSE(all.requests.is_server_gone());
  all.requests.server_ended();
  CHECK(all.requests.is_server_gone());
  const StreamId known = all.asks("/page"), unknown = all.asks("/other");
  CHECK(all.client.messages[known].content == "content");
  CHECK(all.client.messages[unknown].closed);
  CHECK(all.client.messages[unknown].error == errors::refused);
}

TEST_CASE("http/2 requests: more than twice as many as there may be streams are refused") {
  Between all;
  for (StreamId stream = 1001; all.exchanges.size() < 2 * Requests::kMostStreams; stream += 2)
    all.exchanges.open(stream, {});
  const StreamId one = all.asks("/page");
  CHECK(all.client.messages[one].error == errors::refused);
  CHECK(all.exchanges.of_client(one) == nullptr);
  CHECK(all.server.messages.empty());
}

}  // namespace
}  // namespace longhaul::http::h2
