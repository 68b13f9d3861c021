// SPDX-License-Identifier: Apache-2.0
// Connections of clients that come again: sessions of libssl's clients, resumed at the near half.
#include <catch2/catch.hpp>

#include "proxy/modules/tls/descriptor.h"
#include "proxy/modules/tls/sessions.h"
#include "tests/proxy/modules/kit/twins.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {
namespace {

using SessionPointer = std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)>;

struct Daemons {
  Daemons() { instance->use_secrets(secrets); }
  World world;
  std::shared_ptr<modules::Instance> instance{kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1})};
  std::shared_ptr<const modules::Secrets> secrets = world.policy("a.corp");
  std::string protocol = "echo/1";  // of the server
};

// The client asks, the server answers and closes.
struct Return {
  explicit Return(Daemons& setting, unsigned seed, SSL_SESSION* resumes = nullptr,
                 const std::function<void(Return&)>& prepare = [](Return&) {})
      : twins(kDescriptor, seed, setting.instance),
        client_context(setting.world.client_context()),
        server_context(setting.world.server_context(setting.world.real)),
        client(client_context.get(), true) {
    SSL_set_tlsext_host_name(client.ssl(), "a.corp");
    SSL_set1_host(client.ssl(), "a.corp");
    static constexpr unsigned char kProtocols[] = "\x06" "echo/1" "\x06" "echo/2";
    SSL_set_alpn_protos(client.ssl(), kProtocols, sizeof kProtocols - 1);
    if (resumes) SSL_set_session(client.ssl(), resumes);
    prepare(*this);
    server.emplace(server_context.get(), false);
    server->speaks(setting.protocol);
    twins.on_redial = [this] { server.emplace(server_context.get(), false); };
    twins.on_client_bytes = [this] { client.take(twins.at_client), speak(); };
    twins.on_server_bytes = [this] { server->take(twins.at_server), speak(); };
    client.go_on();
    speak();
    twins.run();
  }
  void speak() {
    if (client.is_up && !std::exchange(asked, true)) client.say(question);
    if (server->heard == question && !std::exchange(answered, true)) server->say(answer), server->close();
    if (client.closed && !std::exchange(closed, true)) client.close();
    twins.client_sends(client.out());
    twins.server_sends(server->out());
    if (closed) twins.client_ends();
    if (answered) twins.server_ends();
  }
  bool is_resumed() { return client.is_up && SSL_session_reused(client.ssl()) == 1; }
  bool is_answered() const { return client.heard == answer && server->heard == question; }
  SessionPointer session() { return {SSL_get1_session(client.ssl()), SSL_SESSION_free}; }

  kit::Twins twins;
  Context client_context, server_context;
  End client;
  std::optional<End> server;
  std::string question = std::string(20'000, 'q') + "?", answer = std::string(70'000, 'a') + "!";
  bool asked = false, answered = false, closed = false;
};

TEST_CASE("tls: a client resumes at the near half, each session once, and gets others") {
  for (unsigned seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    Daemons setting;
    Return first(setting, seed);
    REQUIRE(first.is_answered());
    CHECK_FALSE(first.is_resumed());
    SessionPointer session = first.session();
    for (int again = 0; again < 3; ++again) {
      CAPTURE(again);
      Return next(setting, seed, session.get());
      CHECK(next.is_resumed());
      CHECK(next.is_answered());
      CHECK(next.client.closed);
      CHECK_FALSE(next.twins.is_reset());
      // It cannot be used a second time: the far side shakes hands then.
      Return repeated(setting, seed, session.get());
      CHECK_FALSE(repeated.is_resumed());
      CHECK(repeated.is_answered());
      session = next.session();
    }
  }
}

TEST_CASE("tls: a handshake that resumes needs nothing of the far side") {
  Daemons setting;
  Return first(setting, 1);
  const SessionPointer session = first.session();
  const auto cut = [](Return& visit) { visit.twins.line_is_up = false; };
  Return resumed(setting, 2, session.get(), cut);
  CHECK(resumed.is_resumed());
  resumed.twins.line_is_up = true;
  resumed.twins.run();
  CHECK(resumed.is_answered());
  Return fresh(setting, 3, nullptr, cut);
  CHECK_FALSE(fresh.client.is_up);
}

TEST_CASE("tls: a client that resumes reaches no server that does not verify, and none that is not listed any more") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    Daemons setting;
    const Issued other_authority = issue("other"), forged = issue("a.corp", &other_authority);
    Return first(setting, seed);
    const SessionPointer session = first.session();
    Return lied(setting, seed, session.get(),
               [&](Return& visit) { visit.server_context = setting.world.server_context(forged); });
    CHECK(lied.twins.is_reset());
    CHECK(lied.server->heard.empty());
    lied.twins.near.module.stream_ended(lied.twins.now, modules::Ending::reset), lied.twins.near.collect();
    // The next one meets that server itself.
    Return next(setting, seed, lied.session().get(),
               [&](Return& visit) { visit.server_context = setting.world.server_context(forged); });
    CHECK_FALSE(next.client.is_up);
    CHECK_FALSE(next.twins.is_reset());
  }
}

TEST_CASE("tls: sessions end with their entry, with the server's protocol, and when they are forgotten") {
  Daemons setting;
  SECTION("another certificate in the table") {
    Return first(setting, 1);
    const SessionPointer session = first.session();
    Daemons changed;
    // The far side's policy is another one, while the near side has the session.
    kit::Watched near(setting.instance->make_near({})), far(changed.instance->make_far({}, {}));
    const config::FeatureTable table{kDescriptor.features};
    modules::Surroundings told;
    told.features.modules = config::ModuleFeatures::standard(table);
    near.module.on_surroundings({}, told), far.module.on_surroundings({}, told);
    const Context context = setting.world.client_context();
    End client(context.get(), true);
    SSL_set_tlsext_host_name(client.ssl(), "a.corp");
    static constexpr unsigned char kProtocol[] = "\x06" "echo/1";
    SSL_set_alpn_protos(client.ssl(), kProtocol, sizeof kProtocol - 1);
    SSL_set_session(client.ssl(), session.get());
    near.from_lan({}, kit::slice_of(client.out_after_start()));
    REQUIRE(near.to_lan.size() == 1);  // its ServerHello
    while (deliver(near, far, {})) {
    }
    CHECK(far.aborted);
    CHECK(far.to_lan.empty());
    near.module.stream_ended({}, modules::Ending::reset), near.collect();
    CHECK(near.aborted);
    Return next(setting, 1, session.get());
    CHECK_FALSE(next.is_resumed());
    CHECK(next.is_answered());
  }
  SECTION("another protocol of the server") {
    Return first(setting, 1);
    const SessionPointer session = first.session();
    setting.protocol = "echo/2";
    Return next(setting, 1, session.get());
    CHECK(next.twins.is_reset());
    CHECK(next.server->heard.empty());
    Return last(setting, 1, session.get());
    CHECK_FALSE(last.is_resumed());
    CHECK(last.is_answered());
  }
  SECTION("a client that does not speak the server's protocol") {
    Return first(setting, 1);
    const SessionPointer session = first.session();
    Return next(setting, 1, session.get(), [](Return& visit) {
      static constexpr unsigned char kOther[] = "\x06" "echo/3";
      SSL_set_alpn_protos(visit.client.ssl(), kOther, sizeof kOther - 1);
    });
    CHECK_FALSE(next.is_resumed());
  }
  SECTION("features were switched, or the link was lost") {
    Return first(setting, 1);
    const SessionPointer session = first.session();
    setting.instance->forget_sessions();
    Return next(setting, 1, session.get());
    CHECK_FALSE(next.is_resumed());
    CHECK(next.is_answered());
  }
}

TEST_CASE("tls: what a client cannot resume is the same for the far half as ever") {
  Daemons setting;
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Return first(setting, seed);
    SessionPointer session = first.session();
    // With a group that the near half would ask for again, a changed ticket, and none at all.
    Return retried(setting, seed, session.get(), [](Return& visit) { SSL_set1_groups_list(visit.client.ssl(), "P-521:X25519"); });
    CHECK(retried.is_answered());
    Return none(setting, seed);
    CHECK(none.is_answered());
    CHECK_FALSE(none.is_resumed());
  }
}

TEST_CASE("tls: a client with TLS 1.2 resumes, too, once") {
  const auto old = [](Return& visit) { SSL_set_max_proto_version(visit.client.ssl(), TLS1_2_VERSION); };
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Daemons setting;
    Return first(setting, seed, nullptr, old);
    REQUIRE(first.is_answered());
    const SessionPointer session = first.session();
    Return next(setting, seed, session.get(), old);
    CHECK(next.is_resumed());
    CHECK(next.is_answered());
    CHECK_FALSE(next.twins.is_reset());
    Return last(setting, seed, session.get(), old);
    CHECK_FALSE(last.is_resumed());
    CHECK(last.is_answered());
  }
}

TEST_CASE("tls: a client with TLS 1.3 resumes with a server that has TLS 1.2, too") {
  const auto old = [](Return& visit) {
    SSL_CTX_set_max_proto_version(visit.server_context.get(), TLS1_2_VERSION);
  };
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Daemons setting;
    Return first(setting, seed, nullptr, old);
    REQUIRE(first.is_answered());
    CHECK(SSL_version(first.client.ssl()) == TLS1_2_VERSION);
    const SessionPointer session = first.session();
    Return next(setting, seed, session.get(), old);
    CHECK(next.is_resumed());
    CHECK(next.is_answered());
    CHECK_FALSE(next.twins.is_reset());
  }
}

TEST_CASE("tls: sessions are kept by far side, server and name, used once, and no more than allowed") {
  Sessions sessions;
  const modules::TimePoint now{std::chrono::hours(1)};
  const auto put = [&](const Sessions::Place& place, const std::string& name, const std::string& id) {
    sessions.put(place, name, id, {SecretBytes(3), "entry", false, now + Sessions::kLifetime});
  };
  const Sessions::Place here{.port = 443}, there{.port = 444};
  put(here, "a", "1"), put(here, "a", "2"), put(here, "b", "1"), put(there, "a", "1");
  CHECK(sessions.has(here, "a"));
  CHECK_FALSE(sessions.has(there, "b"));
  CHECK_FALSE(sessions.take(there, "b", "1", now));
  CHECK(sessions.take(here, "a", "1", now));
  CHECK_FALSE(sessions.take(here, "a", "1", now));
  CHECK_FALSE(sessions.take(here, "b", "1", now + Sessions::kLifetime));
  sessions.forget(here, "a");
  CHECK_FALSE(sessions.has(here));
  CHECK(sessions.has(there));
  for (std::size_t i = 0; i < Sessions::kMost; ++i) put(here, "c", std::to_string(i));
  CHECK_FALSE(sessions.has(there));
  CHECK(sessions.take(here, "c", "0", now));
  sessions.clear();
  CHECK_FALSE(sessions.has(here));
}

}  // namespace
}  // namespace longhaul::tls
