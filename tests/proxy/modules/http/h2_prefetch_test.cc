// SPDX-License-Identifier: Apache-2.0
// HTTP/2 through both halves with a page that embeds something: it is there when the browser asks.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/h2/ahead.h"
#include "tests/proxy/modules/http/h2_peers.h"
#include "tests/proxy/modules/http/with_prefetch.h"

namespace longhaul::http::h2 {
namespace {

struct Visit {
  explicit Visit(unsigned seed) : twins(kWithPrefetch, seed, kDescriptor.make({.ahead_bytes = 8 << 20, .cache_bytes = 8 << 20, .daemon_number = 1})) {
    twins.on_client_bytes = [this] { alive &= browser.take(twins.at_client), speak(); };
    twins.on_server_bytes = [this] { alive &= server.take(twins.at_server), speak(); };
    browser.session.announce({{2, 0}}, 0);
    server.session.announce({{3, 100}}, 0);
    server.on_message = [this](StreamId stream, Peer::Message& message) {
      if (message.ended) answer(stream, message);
    };
  }
  void answer(StreamId stream, Peer::Message& message) {
    const std::string path = message.head.value(":path");
    asked.push_back(path);
    std::vector<Field> fields;
    if (path == "/page") fields.push_back({"content-type", "text/html"});
    if (path.ends_with(".css")) fields.push_back({"content-type", "text/css"});
    if (path == "/vary") fields.push_back({"vary", "accept"});
    if (path == "/reset") return server.session.reset(stream, errors::refused);
    message.source.add(kit::slice_of(content_of(path)));
    message.source.ended = true;
    if (path == "/tail") message.source.trailers.emplace().add({"checksum", "7"});
    server.session.respond(stream, response(path == "/none" ? "404" : "200", fields), &message.source);
  }
  static std::string content_of(const std::string& path) {
    if (path == "/page")
      return "<link rel=stylesheet href=a.css><script src=large></script><img src=none><img src=vary><img src=reset><img src=tail>";
    if (path == "/a.css") return "@import 'b.css';";
    return (path == "/large" ? std::string(300'000, 'x') : "") + "content of " + path;
  }
  void speak() {
    twins.client_sends(browser.out());
    twins.server_sends(server.out());
  }
  StreamId ask(const std::string& path, const std::string& accept, std::vector<Field> more = {}) {
    more.push_back({"accept", accept});
    more.push_back({"user-agent", "b"});
    return browser.asks(path, std::move(more));
  }
  Peer::Message& get(const std::string& path, const std::string& accept = "image/png", std::vector<Field> more = {}) {
    const StreamId stream = ask(path, accept, std::move(more));
    speak();
    twins.run();
    return browser.messages[stream];
  }
  auto count(const std::string& path) const { return std::ranges::count(asked, path); }

  kit::Twins twins;
  Client browser;
  Peer server{Session::Role::server};
  std::vector<std::string> asked;
  bool alive = true;
};

TEST_CASE("http/2 prefetch: what a page embeds is there when the browser asks, and is what the server would have said") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    Visit visit(seed);
    REQUIRE(visit.get("/page", "text/html").content == Visit::content_of("/page"));
    for (const std::string path : {"/large", "/b.css", "/a.css"}) {
      const Peer::Message& got = visit.get(path);
      REQUIRE(got.content == Visit::content_of(path));
      REQUIRE(got.head.value("cache-status") == "longhaul;hit;detail=prefetched");
      REQUIRE(visit.count(path) == 1);
    }
    for (const std::string path : {"/none", "/vary", "/tail"}) {
      const Peer::Message& got = visit.get(path);
      REQUIRE(got.content == Visit::content_of(path));
      REQUIRE_FALSE(got.head.has("cache-status"));
      REQUIRE(visit.count(path) == 2);
    }
    REQUIRE(visit.get("/tail").trailers.value("checksum") == "7");
    REQUIRE(visit.get("/reset").error == errors::refused);
    CHECK(visit.twins.near.module.counters().objects_ahead_used == 3);
    CHECK(visit.twins.far.module.counters().injected == 7);
    visit.twins.client_ends();
    visit.twins.run();
    visit.twins.server_ends();
    visit.twins.run();
    REQUIRE(visit.alive);
    REQUIRE_FALSE(visit.twins.is_reset());
  }
}

TEST_CASE("http/2 prefetch: requests that come while objects are on their way get what the server would say") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    Visit visit(seed);
    std::map<StreamId, std::string> wanted;
    visit.twins.on_client_bytes = [&, is_said = false]() mutable {
      visit.alive &= visit.browser.take(visit.twins.at_client);
      const bool has_page = std::ranges::any_of(visit.browser.messages, [](const auto& each) { return each.second.ended; });
      if (has_page && !std::exchange(is_said, true))
        for (const std::string path : {"/a.css", "/large", "/none", "/vary", "/other", "/tail"})
          wanted[visit.ask(path, "image/png", path == "/large" && seed % 2 == 0 ? std::vector<Field>{{"cookie", "a=b"}} : std::vector<Field>())] = path;
      visit.speak();
    };
    visit.get("/page", "text/html");
    REQUIRE(wanted.size() == 6);
    for (const auto& [stream, path] : wanted) {
      REQUIRE(visit.browser.messages[stream].ended);
      REQUIRE(visit.browser.messages[stream].content == Visit::content_of(path));
    }
    REQUIRE(visit.count("/large") == (seed % 2 == 0 ? 2 : 1));
  }
}

TEST_CASE("http/2 prefetch: when memory is short nothing more is fetched, and the connection goes on") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    Visit visit(seed);
    const auto give_up = [&] {
      visit.twins.far.module.give_up_memory(visit.twins.now), visit.twins.far.collect();
    };
    visit.get("/other");
    const bool is_before = seed % 2 == 0;
    if (is_before) give_up();
    // Otherwise when the server is asked for the first object of the page.
    visit.twins.on_server_bytes = [&] {
      visit.alive &= visit.server.take(visit.twins.at_server);
      visit.speak();
      if (visit.asked.size() > 2) give_up();
    };
    REQUIRE(visit.get("/page", "text/html").content == Visit::content_of("/page"));
    const std::uint64_t fetched = visit.twins.far.module.counters().injected;
    REQUIRE(fetched <= (is_before ? 0 : Ahead::kMostStreams));
    REQUIRE((fetched == 0) == is_before);
    for (const std::string path : {"/a.css", "/large", "/tail"})
      REQUIRE(visit.get(path).content == Visit::content_of(path));
    REQUIRE(visit.twins.far.module.counters().injected == fetched);
    REQUIRE(visit.alive);
    REQUIRE_FALSE(visit.twins.is_reset());
  }
}

TEST_CASE("http/2 prefetch: when memory is short a connection with very much state at the far side ends") {
  for (const int requests : {8, 80}) {
    CAPTURE(requests);
    Visit visit(1);
    visit.get("/other");
    visit.server.on_message = {};  // no answers
    for (int i = 0; i < requests; ++i)
      visit.ask("/large", "image/png", {{"x-more", std::string(48 << 10, 'x')}});
    visit.speak();
    visit.twins.run();
    REQUIRE_FALSE(visit.twins.is_reset());
    visit.twins.far.module.give_up_memory(visit.twins.now), visit.twins.far.collect();
    CHECK(visit.twins.far.aborted == (requests == 80));
  }
}

}  // namespace
}  // namespace longhaul::http::h2
