// SPDX-License-Identifier: Apache-2.0
// HTTP/2 inside decrypted connections: what the first page embeds is fetched by the far half, although the near half has not
// said anything yet when the page passes.
#include <catch2/catch.hpp>

#include <algorithm>

#include "proxy/modules/tls/descriptor.h"
#include "tests/proxy/modules/http/h2_peers.h"
#include "tests/proxy/modules/http/with_prefetch.h"
#include "tests/proxy/modules/kit/twins.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {
namespace {

// Asks for a page, and for what it embeds when it has that. Its first request follows its Finished at once.
struct PageVisit {
  PageVisit(const World& world, const std::shared_ptr<modules::Instance>& http, unsigned seed)
      : twins(kDescriptor, seed, world.policy("a.corp"), http::kWithPrefetch, http),
        client_context(world.client_context()),
        server_context(world.server_context(world.real)),
        client(client_context.get(), true),
        server(server_context.get(), false) {
    SSL_set_tlsext_host_name(client.ssl(), "a.corp");
    SSL_set1_host(client.ssl(), "a.corp");
    static constexpr unsigned char kProtocols[] = "\x02h2";
    SSL_set_alpn_protos(client.ssl(), kProtocols, sizeof kProtocols - 1);
    server.speaks("h2");
    browser.session.announce({{2, 0}, {4, 6291456}}, 15728640);
    web.session.announce({{3, 100}}, 1 << 20);
    web.on_message = [this](http::h2::StreamId stream, http::h2::Peer::Message& message) {
      if (!message.ended) return;
      asked.push_back(message.head.value(":path"));
      message.source.add(kit::slice_of(content_of(asked.back())));
      message.source.ended = true;
      const std::string type = asked.back() == "/page" ? "text/html" : "text/javascript";
      web.session.respond(stream, http::h2::response("200", {{"content-type", type}}), &message.source);
    };
    page = browser.asks("/page", {{"accept", "text/html"}, {"cookie", "me=password"}}, "https");
    twins.on_client_bytes = [this] { client.take(twins.at_client), speak(); };
    twins.on_server_bytes = [this] { server.take(twins.at_server), speak(); };
    client.go_on();
    speak();
    twins.run();
  }
  static std::string content_of(const std::string& path) {
    if (path == "/page") return "<script src=a></script><script src=b></script><script src=c></script>";
    return std::string(100'000, 'x') + path;
  }
  void speak() {
    if (client.is_up) {
      is_right &= browser.take(client.heard);
      if (objects.empty() && browser.messages[page].ended)
        for (const char* path : {"/a", "/b", "/c"})
          objects.push_back(browser.asks(path, {{"accept", "*/*"}, {"cookie", "me=password"}}, "https"));
      client.say(browser.out());
    }
    if (server.is_up) {
      is_right &= web.take(server.heard);
      server.say(web.out());
    }
    twins.client_sends(client.out());
    twins.server_sends(server.out());
  }

  kit::Twins twins;
  Context client_context, server_context;
  End client, server;
  http::h2::Client browser;
  http::h2::Peer web{http::h2::Session::Role::server};
  std::vector<std::string> asked;
  http::h2::StreamId page = 0;
  std::vector<http::h2::StreamId> objects;
  bool is_right = true;
};

TEST_CASE("tls: what a page embeds is fetched ahead on a decrypted HTTP/2 connection, from its first request on") {
  const World world;
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const std::shared_ptr<modules::Instance> http = http::kWithPrefetch.make({.ahead_bytes = 8 << 20, .cache_bytes = 8 << 20, .daemon_number = 1});
    PageVisit visit(world, http, seed);
    CHECK_FALSE(visit.twins.is_reset());
    CHECK(visit.is_right);
    CHECK(visit.browser.messages[visit.page].content == PageVisit::content_of("/page"));
    REQUIRE(visit.objects.size() == 3);
    for (std::size_t at = 0; at < 3; ++at) {
      const auto& got = visit.browser.messages[visit.objects[at]];
      CHECK(got.ended);
      CHECK(got.content == PageVisit::content_of(std::string(1, '/') + static_cast<char>('a' + at)));
      CHECK(got.head.value("cache-status") == "longhaul;hit;detail=prefetched");
    }
    CHECK(visit.asked.size() == 4);
    CHECK(visit.twins.near.module.counters().objects_ahead_used == 3);
    CHECK(visit.twins.near.module.reason() == modules::Reason());
    // What is announced has the page's request in it.
    CHECK(visit.twins.far.isolated.find("me=password") != std::string::npos);
    CHECK(visit.twins.far.shared.find("me=password") == std::string::npos);
    CHECK(visit.twins.far.shared.find("xxxx") != std::string::npos);
    // When memory is short nothing more is fetched, and the connection goes on.
    visit.twins.far.module.give_up_memory(visit.twins.now), visit.twins.far.collect();
    const auto again = visit.browser.asks("/page", {{"accept", "text/html"}}, "https");
    const auto other = visit.browser.asks("/other", {{"accept", "*/*"}}, "https");
    visit.speak();
    visit.twins.run();
    CHECK_FALSE(visit.twins.is_reset());
    CHECK(visit.browser.messages[again].content == PageVisit::content_of("/page"));
    CHECK(visit.browser.messages[other].content == PageVisit::content_of("/other"));
    CHECK(visit.asked.size() == 6);
  }
}

}  // namespace
}  // namespace longhaul::tls
