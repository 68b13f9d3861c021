// SPDX-License-Identifier: Apache-2.0
// How much of two HTTP/2 connections becomes output, and when: played by a client and a server with sessions
// of their own, whose bytes are carried only when a test says so.
#include "proxy/modules/http/h2/pump.h"

#include <catch2/catch.hpp>
#include <map>

#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http::h2 {
namespace {

constexpr std::size_t kRoom = 128 * 1024;

// The near half's streams, with the client at the LAN; or the same as if the client were at the stream.
struct Flow {
  explicit Flow(Pump::Client place_of_client = Pump::Client::at_lan)
      : pump(out, place_of_client), at_lan(place_of_client == Pump::Client::at_lan) {
    site->wall = [] { return Seconds(1'700'000'000); };
    streams.begin();
    web.session.announce({{3, 100}}, 1 << 20);
  }

  // All output so far, to whom it is for.
  void collect() {
    for (; !out.empty(); out.pop_front()) {
      if (const auto* lan = std::get_if<modules::ToLan>(&out.front()))
        (at_lan ? down : up) += text_of(lan->bytes.bytes());
      if (const auto* stream = std::get_if<modules::ToStream>(&out.front()))
        (at_lan ? up : down) += text_of(stream->bytes.bytes());
      lan_ends += std::holds_alternative<modules::EndLan>(out.front());
      stream_ends += std::holds_alternative<modules::EndStream>(out.front());
    }
  }
  bool run() {
    const bool over = pump.run(streams);
    collect();
    return over;
  }
  // Carries everything until nobody has anything to say; the client gets only what there is room for.
  void exchange() {
    for (bool moved = true; moved;) {
      const std::string asked = client.out();
      CHECK(streams.from_client({}, bytes_of(asked)));
      pump.on_room({.lan = !at_lan, .stream = at_lan});
      run();
      REQUIRE(web.take(up));
      const std::string said = web.out();
      CHECK(streams.from_server({}, bytes_of(said)));
      run();
      moved = !asked.empty() || !said.empty();
    }
  }

  std::deque<modules::Output> out;
  Pump pump;
  bool at_lan;
  Place place{{}, {}};
  std::shared_ptr<Site> site = std::make_shared<Site>(1 << 20);
  Receiving receiving{site, place, {}};
  Streams streams{place, site, receiving};
  Client client;
  Web web;
  std::string down, up;  // output for the client, and for the server
  int lan_ends = 0, stream_ends = 0;
};

}  // namespace

TEST_CASE(
    "HTTP/2 pump: a client that does not read gets what there is room for, and the rest when there is more") {
  const auto at = GENERATE(Pump::Client::at_lan, Pump::Client::at_stream);
  Flow flow(at);
  flow.client.session.announce({{4, 1 << 20}}, 1 << 20);
  const StreamId stream = flow.client.asks("/large");
  flow.exchange();
  // The last piece may exceed the room by its frames' heads.
  CHECK(flow.down.size() >= kRoom);
  CHECK(flow.down.size() < 2 * kRoom);
  for (int rounds = 0; rounds < 20 && !flow.client.messages[stream].ended; ++rounds) {
    REQUIRE(flow.client.take(flow.down));
    flow.pump.on_room({.lan = flow.at_lan, .stream = !flow.at_lan});
    flow.run();
    CHECK(flow.down.size() < 2 * kRoom);
    flow.exchange();
  }
  CHECK(flow.client.messages[stream].content == flow.web.content_of("/large"));
}

TEST_CASE("HTTP/2 pump: room towards one side is none towards the other") {
  Flow flow;
  flow.client.session.announce({{4, 1 << 20}}, 1 << 20);
  flow.client.asks("/large");
  flow.exchange();
  const std::size_t before = flow.down.size();
  flow.pump.on_room({.stream = true});
  flow.run();
  CHECK(flow.down.size() == before);
  flow.pump.on_room({});
  flow.run();
  CHECK(flow.down.size() == before);
  flow.pump.on_room({.lan = true});
  flow.run();
  CHECK(flow.down.size() > before);
}

TEST_CASE("HTTP/2 pump: an end is output once, and nothing goes to that side behind it") {
  Flow flow;
  flow.pump.end_stream(), flow.pump.end_stream();
  CHECK(flow.pump.has_ended_stream());
  CHECK_FALSE(flow.pump.has_ended_lan());
  flow.run();
  CHECK(flow.stream_ends == 1);
  CHECK(flow.up.empty());  // the preface and SETTINGS would be there
  flow.pump.end_lan(), flow.pump.end_lan();
  flow.run();
  CHECK(flow.lan_ends == 1);
  CHECK(flow.pump.has_ended_lan());
}

TEST_CASE("HTTP/2 pump: connections are over when the server has gone and the client has all that it said") {
  Flow flow;
  flow.client.session.announce({{4, 1 << 20}}, 1 << 20);
  const StreamId stream = flow.client.asks("/large");
  flow.exchange();
  flow.streams.server_ended();
  CHECK_FALSE(flow.run());  // no room
  bool over = false;
  for (int rounds = 0; rounds < 20 && !over; ++rounds) {
    REQUIRE(flow.client.take(flow.down));
    flow.pump.on_room({.lan = true, .stream = true});
    over = flow.run();
  }
  CHECK(over);
  REQUIRE(flow.client.take(flow.down));
  CHECK(flow.client.goaway);
  CHECK(flow.client.messages.contains(stream));
}

}  // namespace longhaul::http::h2
