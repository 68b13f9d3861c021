// SPDX-License-Identifier: Apache-2.0
// HTTP/2 whose beginning the server has heard before anybody could read it, as in decrypted connections: it
// is continued, or passes byte for byte, and nothing of it arrives twice or not at all.
#include <catch2/catch.hpp>

#include <random>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/h2/early.h"
#include "proxy/modules/http/reasons.h"
#include "proxy/modules/plaintext.h"
#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http::h2 {
namespace {

struct Late {
  Late(unsigned seed, std::shared_ptr<modules::Instance> shared)
      : random(seed),
        http(std::move(shared)),
        plaintext({{kDescriptor.recognise, kDescriptor.may_be_server, http}}, {}, "a.corp") {
    modules::Surroundings told;
    told.features.modules = config::ModuleFeatures::standard(table);
    plaintext.on_surroundings(now, told);
    web.session.announce({{3, 100}}, 1 << 20);
  }

  // What was said at once: the server has its first bytes, in some pieces, of which the half is told then.
  void said_early(const std::string& flight, std::size_t at_server) {
    at_web = flight.substr(0, at_server);
    all_to_server += at_web;
    const std::string early = at_web;
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < early.size();) {
      const std::size_t size = random() % 3 == 0 ? 1 + random() % 30 : early.size();
      pieces.push_back(early.substr(at, size));
      at += pieces.back().size();
    }
    plaintext.expect_server_has(pieces.size());
    // Less than what would be too much to wait for.
    std::size_t most = 200'000;
    if (random() % 2 == 0) web.take(at_web), most -= from_web(most);
    bool said_rest = false;
    for (const std::string& piece : pieces) {
      if (random() % 4 == 0 && !std::exchange(said_rest, true)) rest_of(flight, at_server);
      plaintext.server_has(now, kit::slice_of(piece));
      collect();
      if (random() % 4 == 0) web.take(at_web), most -= from_web(most);
    }
    if (!said_rest) rest_of(flight, at_server);
    run();
  }
  void rest_of(const std::string& flight, std::size_t at) {
    for (; at < flight.size(); ++at) {  // byte by byte, or all
      const std::size_t size = random() % 2 == 0 ? 1 : flight.size() - at;
      plaintext.from_client(now, kit::slice_of(flight.substr(at, size)));
      collect();
      at += size - 1;
    }
  }
  std::size_t from_web(std::size_t most = ~std::size_t{0}) {
    of_web += web.out();
    const std::string bytes = of_web.substr(0, most);
    of_web.erase(0, bytes.size());
    all_from_server += bytes;
    if (!bytes.empty()) plaintext.from_server(now, kit::slice_of(bytes)), collect();
    return bytes.size();
  }
  void collect() {
    while (auto output = plaintext.poll_output()) {
      if (const auto* up = std::get_if<modules::ToStream>(&*output))
        at_web += text_of(up->bytes.bytes()), all_to_server += text_of(up->bytes.bytes());
      if (const auto* down = std::get_if<modules::ToLan>(&*output))
        at_client += text_of(down->bytes.bytes()), all_to_client += text_of(down->bytes.bytes());
      REQUIRE_FALSE(std::holds_alternative<modules::Abort>(*output));
    }
  }
  std::size_t moved() const { return all_to_server.size() + all_to_client.size() + all_from_server.size(); }
  void run() {
    for (std::size_t before = ~std::size_t{0}; before != moved();) {
      before = moved();
      REQUIRE(web.take(at_web));
      from_web();
      REQUIRE(client.take(at_client));
      if (const std::string bytes = client.out(); !bytes.empty())
        plaintext.from_client(now, kit::slice_of(bytes)), collect();
      plaintext.on_room(now, {.lan = true, .stream = true});
      collect();
    }
  }

  static constexpr std::array<config::ModuleFeature, 1> kHttp{{{.name = "http"}}};
  const config::FeatureTable table{kHttp};
  const link::TimePoint now{std::chrono::hours(1)};
  std::mt19937 random;
  std::shared_ptr<modules::Instance> http;
  modules::Plaintext plaintext;
  Client client;
  Web web;
  std::string at_web, of_web, at_client, all_to_server, all_to_client, all_from_server;
};

std::shared_ptr<modules::Instance> instance() {
  return kDescriptor.make(
      {.ahead_bytes = 1 << 20, .cache_bytes = 16 << 20, .daemon_number = 1, .wall_seconds = [] {
         return std::int64_t{1'700'000'000};
       }});
}

TEST_CASE("http/2: what the server heard early is answered once, and the connection goes on with the cache") {
  const auto http = instance();
  std::uint64_t hits = 0, begun = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    Late late(seed, http);
    // As browsers begin: windows of their own, of the connection and of each stream.
    late.client.session.announce(
        {{1, 65536}, {2, 0}, {3, 1000}, {4, seed % 2 == 0 ? 6291456 : 131072}, {6, 262144}}, 15728640);
    std::vector<std::pair<StreamId, std::string>> wanted;
    for (unsigned i = 0; i <= seed % 4; ++i) {
      const std::string path = std::array{"/fresh", "/large", "/tagged", "/hints"}[late.random() % 4];
      wanted.emplace_back(late.client.asks(path, {}, "https"), late.web.content_of(path));
    }
    std::string flight = late.client.out();
    if (seed % 3 == 0) late.client.session.widen(wanted.front().first, 12'000'000);
    flight += late.client.out();
    late.said_early(flight, 1 + late.random() % flight.size());
    const auto check = [&] {
      for (const auto& [stream, content] : wanted) {
        const Peer::Message& got = late.client.messages[stream];
        REQUIRE(got.ended);
        REQUIRE(got.error == 0);
        REQUIRE(got.content == content);
      }
    };
    check();
    // One whose end the server had not heard can be in the store from the connection before.
    REQUIRE(static_cast<std::size_t>(late.web.asked) + late.plaintext.counters().cache_hits == wanted.size());
    wanted.clear();
    for (const char* path : {"/fresh", "/large", "/tagged"})
      wanted.emplace_back(late.client.asks(path, {}, "https"), late.web.content_of(path));
    late.run();
    check();
    hits += late.plaintext.counters().cache_hits;
    begun += late.plaintext.reason() == modules::Reason(reasons::http_begun);
  }
  CHECK(hits > 300);
  CHECK(begun == 0);
}

TEST_CASE("http/2: an early beginning that is more than requests passes byte for byte") {
  for (unsigned kind = 0; kind < 5; ++kind)
    for (unsigned seed = 0; seed < 20; ++seed) {
      INFO("kind " << kind << ", seed " << seed);
      Late late(seed, instance());
      late.client.session.announce({{2, 0}}, 0);
      StreamId stream = 0;
      if (kind == 0) stream = late.client.sends("POST", "/there", "data");
      if (kind == 1) stream = late.client.asks("/tagged", {{"connection", "close"}}, "https");  // malformed
      if (kind > 1) stream = late.client.asks("/tagged", {}, "https");
      std::string flight = late.client.out();
      if (kind == 2) late.client.session.reset(stream, errors::cancel);
      if (kind == 3) late.client.session.announce({{4, 100'000}}, 0);
      if (kind == 4) late.client.session.say_goodbye();
      flight += late.client.out();
      late.said_early(flight, flight.size());
      CHECK(late.plaintext.reason() == modules::Reason(reasons::http_begun));
      CHECK(late.all_to_server.starts_with(flight));
      CHECK(late.all_to_client == late.all_from_server);
      if (kind == 0) CHECK(late.client.messages[stream].content == "data");
      if (kind == 3) CHECK(late.client.messages[stream].content == "/tagged version 1");
    }
}

TEST_CASE("http: switched off, what the server heard early and what follows pass once") {
  for (const bool is_2 : {true, false})
    for (unsigned seed = 0; seed < 20; ++seed) {
      INFO("seed " << seed << ", HTTP/2 " << is_2);
      Late late(seed, instance());
      late.plaintext.on_surroundings(late.now, {});
      late.client.session.announce({{2, 0}}, 0);
      const StreamId stream = late.client.asks("/fresh", {}, "https");
      const std::string flight = is_2 ? late.client.out() : "GET /fresh HTTP/1.1\r\nHost: x\r\n\r\n";
      if (is_2) {
        late.said_early(flight, 1 + late.random() % flight.size());
        CHECK(late.client.messages[stream].content == "/fresh version 1");
      } else {
        late.plaintext.expect_server_has(1);
        late.plaintext.server_has(late.now, kit::slice_of(flight.substr(0, 20)));
        late.plaintext.from_client(late.now, kit::slice_of(flight.substr(20)));
        late.collect();
        CHECK(late.all_to_server == flight.substr(20));
      }
      CHECK_FALSE(late.plaintext.has_reader());
      CHECK(late.plaintext.counters().cache_hits == 0);
    }
}

TEST_CASE("http/2: a server that speaks first does not wait for ever") {
  Late late(1, instance());
  late.from_web();
  CHECK(late.all_to_client.empty());
  REQUIRE(late.plaintext.next_timeout());
  late.plaintext.on_timeout(*late.plaintext.next_timeout());
  late.collect();
  CHECK(late.all_to_client == late.all_from_server);
  CHECK_FALSE(late.plaintext.next_timeout());
  late.plaintext.from_client(late.now, kit::slice_of("whatever"));
  late.collect();
  CHECK(late.all_to_server == "whatever");
}

TEST_CASE("http/2: a server that is none is heard at once") {
  for (const char* greeting : {"220 mail", "SSH-2.0", "\0\0\x05\4\0\0\0\0\0"}) {
    Late late(1, instance());
    late.plaintext.from_server(late.now, kit::slice_of(std::string(greeting, 7)));
    late.collect();
    CHECK(late.all_to_client.size() == 7);
  }
}

TEST_CASE("http/2: frames with parts of header blocks are told from others") {
  const auto frame = [](char type, std::string content) {
    return std::string{0, 0, static_cast<char>(content.size()), type, 0, 0, 0, 0, 1} + content;
  };
  const auto has_none = [](const std::string& frames) {
    return has_no_headers(std::as_bytes(std::span(frames)));
  };
  const std::string data = frame(0, "content"), settings = frame(4, "");
  CHECK(has_none(data));
  CHECK(has_none(settings + data + data));
  for (const char type : {'\1', '\5', '\11'}) {
    CHECK_FALSE(has_none(frame(type, "block")));
    CHECK_FALSE(has_none(data + frame(type, "block") + data));
  }
  // What is not whole frames may be anything.
  CHECK_FALSE(has_none(data.substr(1)));
  CHECK_FALSE(has_none(data.substr(0, data.size() - 1)));
  CHECK_FALSE(has_none(data + data.substr(0, 5)));
}

}  // namespace
}  // namespace longhaul::http::h2
