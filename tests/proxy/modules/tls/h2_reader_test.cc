// SPDX-License-Identifier: Apache-2.0
// HTTP/2 inside decrypted connections, chosen by ALPN between clients and servers of libssl: what follows the handshake at
// once is continued, and the cache answers the rest.
#include <catch2/catch.hpp>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/reasons.h"
#include "proxy/modules/tls/descriptor.h"
#include "tests/proxy/modules/http/h2_peers.h"
#include "tests/proxy/modules/kit/twins.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {
namespace {

// One connection: the client asks for all of `paths` at once, and for the same again when it has them. Its first requests
// follow its Finished at once, unless it `waits` until the near half has the keys.
struct H2Visit {
  H2Visit(const World& world, const std::shared_ptr<modules::Instance>& http, unsigned seed, bool waits)
      : twins(kDescriptor, seed, world.policy("a.corp"), http::kDescriptor, http),
        client_context(world.client_context()),
        server_context(world.server_context(world.real)),
        client(client_context.get(), true),
        server(server_context.get(), false),
        most_rounds(waits ? 0 : 2) {
    SSL_set_tlsext_host_name(client.ssl(), "a.corp");
    SSL_set1_host(client.ssl(), "a.corp");
    static constexpr unsigned char kProtocols[] = "\x02h2\x08http/1.1";
    SSL_set_alpn_protos(client.ssl(), kProtocols, sizeof kProtocols - 1);
    server.speaks("h2");
    browser.session.announce({{2, 0}, {4, 6291456}}, 15728640);
    web.session.announce({{3, 100}}, 1 << 20);
    twins.on_client_bytes = [this] { client.take(twins.at_client), speak(); };
    twins.on_server_bytes = [this] { server.take(twins.at_server), speak(); };
    client.go_on();
    speak();
    twins.run();
    if (!waits) return;
    most_rounds = 2;
    speak();
    twins.run();
  }

  void speak() {
    if (client.is_up && most_rounds > 0) {
      is_right &= browser.take(client.heard);
      if (rounds < most_rounds && is_answered()) {
        ++rounds;
        for (const char* path : {"/fresh", "/large", "/tagged"})
          wanted.emplace_back(browser.asks(path, {}, "https"), web.content_of(path));
      }
      client.say(browser.out());
    }
    if (server.is_up) {
      is_right &= web.take(server.heard);
      server.say(web.out());
    }
    twins.client_sends(client.out());
    twins.server_sends(server.out());
  }
  bool is_answered() {
    return std::ranges::all_of(wanted, [&](const auto& each) {
      const auto& got = browser.messages[each.first];
      return got.ended && got.error == 0 && got.content == each.second;
    });
  }

  kit::Twins twins;
  Context client_context, server_context;
  End client, server;
  http::h2::Client browser;
  http::h2::Web web;
  std::vector<std::pair<http::h2::StreamId, std::string>> wanted;
  int rounds = 0, most_rounds;
  bool is_right = true;
};

TEST_CASE("tls: HTTP/2 that begins with the handshake is continued, and answered from the cache") {
  const World world;
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    const std::shared_ptr<modules::Instance> http = http::kDescriptor.make({.ahead_bytes = 1 << 20, .cache_bytes = 16 << 20, .daemon_number = 1});
    bool is_first = true;
    for (const bool waits : {false, true, false}) {
      CAPTURE(waits);
      H2Visit visit(world, http, seed, waits);
      CHECK_FALSE(visit.twins.is_reset());
      CHECK(visit.is_right);
      CHECK(visit.rounds == 2);
      CHECK(visit.is_answered());
      CHECK(visit.twins.near.module.reason() == modules::Reason());
      // What has a lifetime, from the first record on; what has a tag is asked about.
      CHECK(visit.twins.near.module.counters().cache_hits == (is_first ? 2 : 4));
      CHECK(visit.twins.near.module.counters().cache_validations == (is_first ? 1 : 2));
      CHECK(visit.web.asked == (is_first ? 4 : 2));
      is_first = false;
    }
  }
}

}  // namespace
}  // namespace longhaul::tls
