// SPDX-License-Identifier: Apache-2.0
// Extended CONNECT (RFC 8441), as WebSockets use it, through both halves, with two connections and with three: offered
// if the server offers it, and carried as it is.
#include <catch2/catch.hpp>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/h2/streams.h"
#include "tests/proxy/modules/http/h2_peers.h"
#include "tests/proxy/modules/http/with_prefetch.h"

namespace longhaul::http::h2 {
namespace {

const Session::Settings kOffer{{8, 1}};

Fields connect(const std::string& path = "/chat", std::vector<Field> more = {}) {
  Fields block;
  block.add({":method", "CONNECT"});
  block.add({":protocol", "websocket"});
  block.add({":scheme", "http"});
  block.add({":authority", "x"});
  block.add({":path", path});
  block.add({"sec-websocket-version", "13"});
  for (Field& field : more) block.add(std::move(field));
  return block;
}

// `three`: connections, as with prefetch.
struct Sockets {
  Sockets(unsigned seed, bool three, const Session::Settings& offer = kOffer)
      : twins(three ? kWithPrefetch : kDescriptor, seed, kDescriptor.make({.ahead_bytes = 8 << 20, .cache_bytes = 8 << 20, .daemon_number = 1})) {
    twins.on_client_bytes = [this] { client_alive &= client.take(twins.at_client), speak(); };
    twins.on_server_bytes = [this] { web_alive &= web.take(twins.at_server), speak(); };
    web.on_message = [this](StreamId stream, Peer::Message& message) {
      if (message.head.value(":method") == "CONNECT" && !message.ended)
        web.session.respond(stream, response("200", {{"sec-websocket-protocol", "chat"}}), &message.source);
      if (message.head.value(":method") == "GET") answer(stream, message);
    };
    client.session.announce({{2, 0}}, 0);
    web.session.announce(offer, 0);
    get("/first");
  }
  void answer(StreamId stream, Peer::Message& message) {
    message.source.add(kit::slice_of(content));
    message.source.ended = true;
    web.session.respond(stream, response("200", {{"content-type", type}, {"cache-control", "max-age=3600"}}), &message.source);
  }
  void speak() {
    twins.client_sends(client.out());
    twins.server_sends(web.out());
  }
  void run() {
    speak();
    twins.run();
  }
  Peer::Message& get(const std::string& path, std::vector<Field> more = {}) {
    const StreamId stream = client.asks(path, std::move(more));
    run();
    return client.messages[stream];
  }
  StreamId open(const Fields& block) {
    const auto stream = client.session.request(block, &from_client);
    run();
    return stream.value();
  }
  // The only tunnel of a test.
  StreamId of_server() const {
    for (const auto& [stream, message] : web.messages)
      if (message.head.value(":method") == "CONNECT") return stream;
    return 0;
  }
  Source& from_server() { return web.messages[of_server()].source; }
  void say(Source& source, Session& session, StreamId stream, const std::string& text) {
    source.add(kit::slice_of(text));
    session.resume(stream);
  }
  void client_says(const std::string& text) { say(from_client, client.session, opened, text); }
  void server_says(const std::string& text) { say(from_server(), web.session, of_server(), text); }
  bool is_healthy() const { return client_alive && web_alive && !twins.is_reset(); }

  kit::Twins twins;
  Client client;
  Peer web{Session::Role::server};
  Source from_client;
  StreamId opened = 0;
  std::string content = "content", type = "text/plain";
  bool client_alive = true, web_alive = true;
};

void for_all(unsigned seeds, const std::function<void(unsigned, bool)>& play) {
  for (const bool three : {false, true})
    for (unsigned seed = 0; seed < seeds; ++seed) {
      INFO("seed " << seed << ", connections: " << (three ? 3 : 2));
      play(seed, three);
    }
}

TEST_CASE("http/2 tunnels: they are offered if the server offers them, sooner or later, and are accepted only then") {
  for_all(20, [](unsigned seed, bool three) {
    Sockets offered(seed, three);
    REQUIRE(offered.client.session.peer_takes_tunnels());

    Sockets later(seed, three, {{3, 100}});
    REQUIRE_FALSE(later.client.session.peer_takes_tunnels());
    const StreamId refused = later.open(connect());
    REQUIRE(later.client.messages[refused].error == errors::protocol);
    REQUIRE(later.of_server() == 0);
    later.web.session.announce(kOffer, 0);
    later.run();
    REQUIRE(later.client.session.peer_takes_tunnels());
    const StreamId accepted = later.open(connect());
    REQUIRE(later.client.messages[accepted].head.value(":status") == "200");
    REQUIRE(later.is_healthy());
  });
}

TEST_CASE("http/2 tunnels: a server that takes its offer back loses the connection, and the client learns nothing of it") {
  for_all(10, [](unsigned seed, bool three) {
    Sockets pair(seed, three);
    pair.web.session.announce({{8, 0}}, 0);
    pair.run();
    REQUIRE(pair.client.session.peer_takes_tunnels());
    REQUIRE(pair.client_alive);
    REQUIRE(pair.web.goaway);
    REQUIRE(pair.twins.near.lan_ended);
  });
}

TEST_CASE("http/2 tunnels: the request with its fields, and what both sides say, arrive in order and at once") {
  for_all(50, [](unsigned seed, bool three) {
    Sockets pair(seed, three);
    pair.opened = pair.open(connect("/chat", {{"sec-websocket-protocol", "chat"}, {"origin", "http://x"}}));
    const Peer::Message& got = pair.web.messages[pair.of_server()];
    for (const auto& [name, value] : {std::pair{":protocol", "websocket"}, {":path", "/chat"}, {":scheme", "http"}, {":authority", "x"},
                                      {"sec-websocket-version", "13"}, {"sec-websocket-protocol", "chat"}, {"origin", "http://x"}})
      REQUIRE(got.head.value(name) == value);
    REQUIRE(pair.client.messages[pair.opened].head.value(":status") == "200");
    REQUIRE(pair.client.messages[pair.opened].head.value("sec-websocket-protocol") == "chat");
    REQUIRE_FALSE(got.ended);

    std::string up, down;
    for (int i = 0; i < 30; ++i) {
      const std::size_t size = pair.twins.random() % 8 == 0 ? 100'000 : pair.twins.random() % 30;
      const std::string text(size, static_cast<char>('a' + i % 26));
      const auto way = pair.twins.random() % 3;
      if (way != 0) pair.client_says(text), up += text;
      if (way != 1) pair.server_says(text), down += text;
      pair.run();
      REQUIRE(pair.web.messages[pair.of_server()].content == up);
      REQUIRE(pair.client.messages[pair.opened].content == down);
    }
    // Each direction ends by itself, and the other goes on.
    const bool client_first = seed % 2 == 0;
    const auto end = [&](bool of_client) {
      (of_client ? pair.from_client : pair.from_server()).ended = true;
      of_client ? pair.client.session.resume(pair.opened) : pair.web.session.resume(pair.of_server());
      pair.run();
    };
    end(client_first);
    REQUIRE(pair.web.messages[pair.of_server()].ended == client_first);
    REQUIRE(pair.client.messages[pair.opened].ended == !client_first);
    REQUIRE_FALSE(pair.client.messages[pair.opened].closed);
    if (client_first)
      pair.server_says("last"), down += "last";
    else
      pair.client_says("last"), up += "last";
    pair.run();
    end(!client_first);
    REQUIRE(pair.web.messages[pair.of_server()].content == up);
    REQUIRE(pair.client.messages[pair.opened].content == down);
    for (const Peer::Message* each : {&pair.client.messages[pair.opened], &pair.web.messages[pair.of_server()]}) {
      REQUIRE(each->closed);
      REQUIRE(each->error == errors::none);
    }
    REQUIRE(pair.twins.near.module.queued_bytes() == 0);
    REQUIRE(pair.is_healthy());
  });
}

TEST_CASE("http/2 tunnels: a reset arrives with its code, behind what was said before it, from both sides") {
  for_all(40, [](unsigned seed, bool three) {
    Sockets pair(seed, three);
    pair.opened = pair.open(connect());
    const bool of_client = seed % 2 == 0;
    const std::uint32_t error = std::array{errors::none, errors::cancel, errors::internal}[seed % 3];
    const std::string last(seed % 4 < 2 ? 0 : 1000, 'l');
    of_client ? pair.client_says(last) : pair.server_says(last);
    pair.speak();
    of_client ? pair.client.session.reset(pair.opened, error) : pair.web.session.reset(pair.of_server(), error);
    pair.run();
    const Peer::Message& got = of_client ? pair.web.messages[pair.of_server()] : pair.client.messages[pair.opened];
    REQUIRE(got.content == last);
    REQUIRE(got.closed);
    REQUIRE(got.error == error);
    REQUIRE(pair.twins.near.module.queued_bytes() == 0);
    REQUIRE(pair.get("/after").content == "content");
    REQUIRE(pair.is_healthy());
  });
}

TEST_CASE("http/2 tunnels: a reset does not wait for a side that does not read") {
  for_all(4, [](unsigned seed, bool three) {
    Sockets pair(seed, three);
    pair.client.reads = pair.web.reads = false;
    pair.opened = pair.open(connect());
    const std::string much(900'000, 'm');
    pair.client_says(much), pair.server_says(much);
    pair.run();
    REQUIRE(pair.web.messages[pair.of_server()].content.size() == 65'535);
    if (seed % 2 == 0)
      pair.client.session.reset(pair.opened, errors::cancel);
    else
      pair.web.session.reset(pair.of_server(), errors::cancel);
    pair.run();
    REQUIRE(pair.client.messages[pair.opened].error == errors::cancel);
    REQUIRE(pair.web.messages[pair.of_server()].error == errors::cancel);
    REQUIRE(pair.twins.near.module.queued_bytes() == 0);
    REQUIRE(pair.is_healthy());
  });
}

TEST_CASE("http/2 tunnels: they are neither answered from the store nor stored, and do not wait for pushed objects") {
  for_all(10, [](unsigned seed, bool three) {
    Sockets pair(seed, three);
    pair.content = "<img src=object>", pair.type = "text/html";
    const std::vector<Field> browser{{"accept", "text/html"}, {"user-agent", "b"}};
    pair.get("/page", browser);
    pair.get("/page", browser);
    const modules::Counters before = pair.twins.near.module.counters();
    REQUIRE(before.cache_hits > 0);
    for (const std::string path : {"/page", "/object"}) {
      Source nothing;
      const auto stream = pair.client.session.request(connect(path, browser), &nothing);
      pair.run();
      REQUIRE(pair.client.messages[stream.value()].head.value("sec-websocket-protocol") == "chat");
      REQUIRE_FALSE(pair.client.messages[stream.value()].head.has("cache-status"));
      pair.client.session.reset(stream.value(), errors::cancel);
      pair.run();
    }
    const modules::Counters& after = pair.twins.near.module.counters();
    REQUIRE(after.cache_hits == before.cache_hits);
    REQUIRE(after.objects_ahead_used == before.objects_ahead_used);
    REQUIRE(pair.get("/page", browser).head.value("cache-status") == "longhaul;hit");
    REQUIRE(pair.is_healthy());
  });
}

TEST_CASE("http/2 tunnels: switched off, those that are open go on") {
  for_all(5, [](unsigned seed, bool three) {
    Sockets pair(seed, three);
    pair.opened = pair.open(connect());
    pair.twins.near.module.on_surroundings(pair.twins.now, {});
    pair.twins.near.collect();
    pair.run();
    REQUIRE(pair.client.goaway);
    pair.client_says("up"), pair.server_says("down");
    pair.run();
    REQUIRE(pair.web.messages[pair.of_server()].content == "up");
    REQUIRE(pair.client.messages[pair.opened].content == "down");
    REQUIRE(pair.is_healthy());
  });
}

// Two responses that always have more to send, and a tunnel.
struct Busy {
  Busy() {
    web.announce({{8, 1}, {9, 1}}, 0);
    client.session.announce({{4, 0x7FFFFFFF}}, 0x7FFFFFFF);
    exchange();
    const std::vector<Field> urgent{{"priority", "u=0, i"}};
    for (const Fields& block : {request("/large"), request("/larger", urgent), connect()})
      client.session.request(block, block.has(":protocol") ? &nothing : nullptr);
    exchange();
    for (const StreamId stream : {1, 3}) {
      large[stream].add(Slice::copy_of(Buffer(20 << 20)));
      web.respond(stream, response("200"), &large[stream]);
    }
    web.add_tunnel(5);
    web.respond(5, response("200"), &tunnel);
  }
  void exchange() {
    for (int i = 0; i < 3; ++i) {
      Buffer up, down;
      client.session.drain(up, ~std::size_t{0}), web.feed(up);
      web.drain(down, 1 << 20), client.session.feed(down);
    }
  }
  // Another line of so many bytes.
  void send(std::size_t bytes) {
    Buffer down;
    web.drain(down, bytes);
    client.session.feed(down);
  }
  std::size_t got(StreamId stream) { return client.messages[stream].content.size(); }

  class Requests : public SessionUser {
   public:
    void on_headers(StreamId, Fields, bool) override {}
    void on_data(StreamId, Bytes) override {}
    void on_end(StreamId) override {}
    void on_closed(StreamId, std::uint32_t) override {}
    void on_goaway() override {}
    void on_sent(StreamId, std::size_t) override {}
    void on_end_sent(StreamId) override {}
  } requests;
  Session web{Session::Role::server, requests};
  Client client;
  Source nothing, tunnel;
  std::map<StreamId, Source> large;
};

TEST_CASE("http/2 tunnels: a small message does not wait for downloads, and much of it leaves them half of the line") {
  Busy busy;
  busy.send(200'000);
  for (int i = 1; i <= 200; ++i) {
    busy.tunnel.add_copy(bytes_of("message"));
    busy.web.resume(5);
    busy.send(17'000);
    REQUIRE(busy.got(5) == i * 7u);
  }
  const std::size_t before = busy.got(1) + busy.got(3), messages = busy.got(5);
  busy.tunnel.add(Slice::copy_of(Buffer(4 << 20)));
  busy.web.resume(5);
  for (int i = 0; i < 60; ++i) busy.send(20'000);
  const std::size_t tunnel = busy.got(5) - messages, downloads = busy.got(1) + busy.got(3) - before;
  INFO("tunnel " << tunnel << ", downloads " << downloads);
  CHECK(tunnel > 400'000);
  CHECK(downloads > 400'000);
}

}  // namespace
}  // namespace longhaul::http::h2
