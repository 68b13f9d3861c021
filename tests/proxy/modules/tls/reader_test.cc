// SPDX-License-Identifier: Apache-2.0
// HTTP inside decrypted connections, between clients and servers of libssl: the cache answers there as it does in the clear.
#include <catch2/catch.hpp>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/tls/descriptor.h"
#include "proxy/modules/tls/near.h"
#include "tests/proxy/modules/kit/twins.h"
#include "tests/proxy/modules/tls/device.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {
namespace {

const std::string kGet = "GET /page HTTP/1.1\r\nHost: a.corp\r\n\r\n";

// When the near half gets the keys: with the server's Finished, or when the handshake is over: in TLS 1.2,
// and where a device has the server's key.
enum class Keyed : std::uint8_t { early, late_1_2, late_1_3 };

std::shared_ptr<const modules::Secrets> policy_of(const World& world, Keyed keyed) {
  return keyed == Keyed::late_1_3 ? held_policy(world, std::make_shared<Device>(world.shown.key))
                                  : world.policy("a.corp");
}

// One connection: the client asks for /page twice, the second time after the answer, and closes. Its first
// request follows its Finished at once, unless it `waits` until the near half has the keys.
struct Visit {
  Visit(const World& world, const std::shared_ptr<modules::Instance>& http, unsigned seed,
        std::string said_first = "", bool waits = false, Keyed keyed = Keyed::early)
      : twins(kDescriptor, seed, policy_of(world, keyed), http::kDescriptor, http),
        client_context(world.client_context()),
        server_context(world.server_context(world.real)),
        client(client_context.get(), true),
        server(server_context.get(), false),
        first(std::move(said_first)),
        wanted(waits ? 0 : 2) {
    SSL_set_tlsext_host_name(client.ssl(), "a.corp");
    SSL_set1_host(client.ssl(), "a.corp");
    if (keyed == Keyed::late_1_2) SSL_set_max_proto_version(client.ssl(), TLS1_2_VERSION);
    twins.on_client_bytes = [this] { client.take(twins.at_client), speak(); };
    twins.on_server_bytes = [this] { server.take(twins.at_server), speak(); };
    client.go_on();
    speak();
    twins.run();
    if (!waits) return;
    wanted = 2;
    speak();
    twins.run();
  }

  void speak() {
    if (client.is_up && !first.empty()) client.say(std::exchange(first, {}));
    for (std::size_t end; (end = client.heard.find("content of the page")) != std::string::npos;) {
      client.heard.erase(0, end + 1);
      ++answered;
    }
    if (client.is_up && asked == answered && asked < wanted) client.say(kGet), ++asked;
    for (std::size_t end; (end = server.heard.find("\r\n\r\n")) != std::string::npos;) {
      server.heard.erase(0, end + 4);
      ++reached;
      server.say("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 19\r\n\r\ncontent of the page");
    }
    if (answered >= 2 && !std::exchange(closes, true)) client.close();
    if (server.closed && !std::exchange(server_closes, true)) server.close();
    twins.client_sends(client.out());
    twins.server_sends(server.out());
    if (closes) twins.client_ends();
    if (server_closes) twins.server_ends();
  }

  kit::Twins twins;
  Context client_context, server_context;
  End client, server;
  std::string first;
  int wanted, asked = 0, answered = 0, reached = 0;
  bool closes = false, server_closes = false;
};

TEST_CASE("tls: pages of decrypted connections are answered from the cache") {
  const World world;
  const Keyed keyed = GENERATE(Keyed::early, Keyed::late_1_2, Keyed::late_1_3);
  for (unsigned seed = 0; seed < 30; ++seed) {
    CAPTURE(seed, static_cast<int>(keyed));
    const std::shared_ptr<modules::Instance> http = http::kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1});
    bool is_first = true;
    for (const bool waits : {false, true, false}) {
      const Visit visit(world, http, seed, "", waits, keyed);
      CHECK_FALSE(visit.twins.is_reset());
      CHECK(visit.answered == 2);
      // Keys that come late may find the first request on its way to the server; it is always so behind the
      // client's Finished.
      if (is_first || (keyed == Keyed::late_1_3 && !waits)) CHECK(visit.reached == 1);
      if (!is_first && (keyed == Keyed::early || waits)) CHECK(visit.reached == 0);
      CHECK(visit.client.closed);  // with close_notify
      CHECK(visit.twins.near.module.counters().cache_hits == static_cast<std::uint64_t>(2 - visit.reached));
      is_first = false;
    }
  }
}

TEST_CASE("tls: requests' headers are isolated from dictionaries, their content is not") {
  const World world;
  const std::string head = "POST /page HTTP/1.1\r\nHost: a.corp\r\nCookie: password\r\n", content(5000, 'c');
  const std::string request = head + "Content-Length: 5000\r\n\r\n" + content;
  SECTION("as HTTP is read") {
    const std::shared_ptr<modules::Instance> http =
        http::kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1});
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Visit visit(world, http, seed, request);
      REQUIRE(visit.reached > 0);
      CHECK(visit.twins.near.isolated.find("Cookie: password\r\n") != std::string::npos);
      CHECK(visit.twins.near.shared.find("password") == std::string::npos);
      CHECK(visit.twins.near.isolated.find("cccc") == std::string::npos);
      CHECK(visit.twins.near.shared.find(content) != std::string::npos);
    }
  }
  SECTION("small content, which may be a form, and what has fields in it are isolated, too") {
    const std::shared_ptr<modules::Instance> http =
        http::kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1});
    for (const std::string& whole : {head + "Content-Length: 8\r\n\r\nis=cccc&",
                                     head + "Transfer-Encoding: chunked\r\n\r\n1388;x=cccc\r\n" + content +
                                         "\r\n0\r\ncccc: 1\r\n\r\n"}) {
      const Visit visit(world, http, 1, whole);
      REQUIRE(visit.reached > 0);
      CHECK(visit.twins.near.isolated.find("cccc") != std::string::npos);
      CHECK(visit.twins.near.shared.find("cccc") == std::string::npos);
    }
  }
  SECTION("everything, if it is not read") {
    const std::shared_ptr<modules::Instance> http =
        http::kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1});
    const Visit visit(world, http, 1, "NO HTTP\r\npassword\r\n\r\nmore");
    REQUIRE(visit.reached > 0);
    CHECK(visit.twins.near.isolated.find("password") != std::string::npos);
    CHECK(visit.twins.near.shared.find("password") == std::string::npos);
    CHECK(visit.twins.near.shared.find("more") == std::string::npos);
  }
}

TEST_CASE("tls: what is stored of a connection in the clear does not answer a decrypted one") {
  const World world;
  const std::shared_ptr<modules::Instance> http = http::kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1});
  const auto plain = http->make_near({});
  config::FeatureTable table{http::kDescriptor.features};
  modules::Surroundings told;
  told.features.modules = config::ModuleFeatures::standard(table);
  plain->on_surroundings({}, told);
  plain->from_lan({}, kit::slice_of(kGet));
  plain->from_stream({}, kit::slice_of("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nforged"));
  REQUIRE(http->ahead_bytes() > 0);
  const Visit visit(world, http, 1);
  CHECK(visit.answered == 2);
  CHECK(visit.reached == 1);
}

TEST_CASE("tls: what is not HTTP inside passes, and so does what follows it") {
  const World world;
  const std::shared_ptr<modules::Instance> http = http::kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1});
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    const Visit visit(world, http, seed, "NOTIFY another protocol\r\n");
    CHECK_FALSE(visit.twins.is_reset());
    CHECK(visit.reached == 2);
    CHECK(visit.client.closed);
    CHECK(http->ahead_bytes() == 0);
  }
}

// Whether this name, or this much plaintext, from a peer resets the connection.
bool is_reset_by(const std::string& name, std::size_t said_bytes = 0) {
  const config::FeatureTable table{kDescriptor.features};
  modules::Surroundings told;
  told.features.modules = config::ModuleFeatures::standard(table);
  kit::Watched near(std::make_unique<Near>(modules::Ends{}, modules::PlaintextReaders{}, std::make_shared<NearSite>()));
  near.module.on_surroundings({}, told);
  const auto tell = [&](const Message& message) {
    near.module.from_twin({}, twin::encode(message));
    near.collect();
  };
  // A record that is under way when the keys come: its plaintext is expected.
  near.from_lan({}, kit::slice_of(std::string("\x17\x03\x03\x00\x01x", 6)));
  const Slice secret = kit::slice_of(std::string(32, 's'));
  tell(Keys{.suite = 0x1301, .client_secret = secret, .server_secret = secret, .name = kit::slice_of(name)});
  if (!near.aborted && said_bytes > 0) tell(Said{.bytes = kit::slice_of(std::string(said_bytes, 'x'))});
  return near.aborted;
}

TEST_CASE("tls: a name that is no host name, and more than is said, reset the connection") {
  CHECK_FALSE(is_reset_by("a.corp"));
  CHECK_FALSE(is_reset_by("a.corp", Said::kMostBytes));
  CHECK(is_reset_by("a.corp", Said::kMostBytes + 1));
  for (const std::string& name : {std::string(), std::string("a.corp\x1b[2J"), std::string("A.corp"), std::string("a.corp\0", 7),
                                  std::string("\xff\xfe"), std::string(256, 'a')}) {
    CAPTURE(name);
    CHECK(is_reset_by(name));
  }
}

TEST_CASE("tls: much that is said at once is not told back, and passes without the cache") {
  const World world;
  const std::shared_ptr<modules::Instance> http = http::kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1});
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    const Visit visit(world, http, seed,
                      "PUT /page HTTP/1.1\r\nHost: a.corp\r\nContent-Length: 40000\r\n\r\n" + std::string(40000, 'x'));
    CHECK_FALSE(visit.twins.is_reset());
    CHECK(visit.client.closed);
    CHECK(visit.twins.near.module.counters().cache_hits == 0);
    CHECK(http->ahead_bytes() == 0);
  }
}

}  // namespace
}  // namespace longhaul::tls
