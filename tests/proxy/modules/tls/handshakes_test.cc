// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/handshakes.h"

#include "proxy/modules/tls/reasons.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {
namespace {

using Next = Handshakes::Next;

const std::string kEcho =
    "\x06"
    "echo/1";

// A client whose ClientHello was read, or that has resumed, and a server.
struct BothSides {
  enum class From : std::uint8_t { hello, resumed };
  explicit BothSides(From from = From::hello, const Issued* server_is = nullptr)
      : policy(std::static_pointer_cast<const Policy>(world.policy("a.corp"))),
        server_context(world.server_context(server_is ? *server_is : world.real)) {
    ends.client[15] = std::byte{1};  // zero stands for every client
    wanted = {.entry = policy->find({}, "a.corp", {}), .name = "a.corp", .protocols = {}};
    append(wanted.protocols, std::as_bytes(std::span(kEcho)));
    std::unique_ptr<Leg> hello;
    if (from == From::hello) {
      SSL_set_tlsext_host_name(client.ssl(), "a.corp");
      SSL_set_alpn_protos(client.ssl(), reinterpret_cast<const unsigned char*>(kEcho.data()),
                          static_cast<unsigned>(kEcho.size()));
      Decision decision(site.undecided.get(), *policy, site.remembered, ends);
      const std::string said = client.out_after_start();
      REQUIRE(decision.take(now, std::as_bytes(std::span(said))) == Decision::Next::terminated);
      wanted = decision.take_wanted();
      hello = decision.take_leg();
    }
    shaking.emplace(site, policy, ends, wanted, std::move(hello), out);
  }

  // Moves what was output, and notes the messages for the near half.
  void deliver() {
    while (auto output = out.poll()) {
      if (const auto* bytes = std::get_if<modules::ToLan>(&*output)) to_server += text(bytes->bytes);
      if (const auto* bytes = std::get_if<modules::ToStream>(&*output)) to_client += text(bytes->bytes);
      if (const auto* message = std::get_if<modules::ToTwin>(&*output)) {
        told.push_back(twin::decode<Message>(message->message.bytes()).value());
        if (const auto* keys = std::get_if<Keys>(&told.back())) to_client += text(keys->flight);
      }
    }
    has_served |= !to_client.empty();
    if (serves) server.take(to_server);
    client.take(to_client);
  }
  // Until there is nothing more to say.
  Next run(Next next) {
    for (int rounds = 0; next == Next::more && rounds < 20; ++rounds) {
      deliver();
      if (shaking->is_asking() || !shaking->reads_client()) {
        const std::string said = server.out();
        next = shaking->from_server(now, std::as_bytes(std::span(said)));
      } else {
        const std::string said = client.out();
        next = shaking->from_client(now, std::as_bytes(std::span(said)));
      }
    }
    deliver();
    return next;
  }
  Next run() { return run(shaking->begin(now)); }
  std::string remembered() const {
    const auto why = site.remembered.why(Remembered::of_server(ends, "a.corp"), now);
    return why ? std::string((*why)->code) : "";
  }
  static std::string text(const Slice& slice) {
    return {reinterpret_cast<const char*>(slice.bytes().data()), slice.size()};
  }

  World world;
  Site site;
  modules::Ends ends{};
  modules::TimePoint now{};
  std::shared_ptr<const Policy> policy;
  Context client_context = world.client_context(), server_context;
  End client{client_context.get(), true}, server{server_context.get(), false};
  Wanted wanted;
  twin::Outputs<Message> out;
  std::vector<Message> told;
  std::string to_server, to_client;
  bool has_served = false, serves = true;
  std::optional<Handshakes> shaking;
};

TEST_CASE("tls handshakes: with the server, then with the client, and then the near half has the secrets") {
  BothSides one;
  CHECK(one.shaking->is_asking());
  REQUIRE(one.run() == Next::done);
  CHECK(one.client.is_up);
  CHECK(one.server.is_up);
  CHECK(one.shaking->has_answered_client());
  REQUIRE(one.told.size() == 1 + kSessions);
  CHECK(std::get<Keys>(one.told[0]).is_early());
  for (std::size_t i = 1; i < one.told.size(); ++i) CHECK(std::get<Session>(one.told[i]).ticket.size() > 0);
  CHECK(one.shaking->detail().starts_with("TLS 1.3 for a.corp, decrypted, "));
  const auto client = one.shaking->take_client();
  CHECK(client);
  CHECK(one.shaking->take_server());
}

TEST_CASE("tls handshakes: the client gets nothing before the server is verified") {
  BothSides one;
  one.serves = false;
  REQUIRE(one.shaking->begin(one.now) == Next::more);
  one.deliver();
  CHECK(one.to_server.size() > 0);
  CHECK_FALSE(one.has_served);
  CHECK_FALSE(one.shaking->reads_client());

  const Issued stranger = issue("a.corp");
  BothSides other(BothSides::From::hello, &stranger);
  CHECK(other.run() == Next::passes);
  CHECK_FALSE(other.has_served);
  CHECK_FALSE(other.shaking->has_answered_client());
  CHECK(other.shaking->reason()->code == reasons::tls_server_refused.code);
  CHECK(other.shaking->detail().starts_with("TLS for a.corp not decrypted: "));
  CHECK(other.remembered() == reasons::tls_server_refused.code);
}

TEST_CASE("tls handshakes: a server that ends before its handshake is over gets the ClientHello itself") {
  for (const auto ending : {modules::Ending::closed, modules::Ending::reset}) {
    BothSides one;
    REQUIRE(one.shaking->begin(one.now) == Next::more);
    CHECK(one.shaking->server_ended(one.now, ending) == Next::passes);
    CHECK(one.remembered() == reasons::tls_server_refused.code);
  }
}

TEST_CASE("tls handshakes: an end during the client's waits for it; a reset does not") {
  BothSides one;
  Next next = one.shaking->begin(one.now);
  while (next == Next::more && one.shaking->is_asking()) {
    one.deliver();
    const std::string said = one.server.out();
    next = one.shaking->from_server(one.now, std::as_bytes(std::span(said)));
  }
  REQUIRE(next == Next::more);
  CHECK(one.shaking->server_ended(one.now, modules::Ending::reset) == Next::failed);
  CHECK(one.shaking->server_ended(one.now, modules::Ending::closed) == Next::more);
  CHECK(one.remembered().empty());
  const Buffer early(Handshakes::kMostEarlyBytes);
  CHECK(one.shaking->from_server(one.now, early) == Next::more);
  SECTION("the handshake goes on") { CHECK(one.run(Next::more) == Next::done); }
  SECTION("the server says too much") {
    CHECK(one.shaking->from_server(one.now, Bytes(early).first(1)) == Next::failed);
  }
}

TEST_CASE("tls handshakes: the server's is over when the client's is, in TLS 1.3") {
  BothSides one;
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  SSL_set_max_proto_version(one.server.ssl(), version);
  Next next = one.shaking->begin(one.now);
  while (next == Next::more && one.shaking->is_asking()) {
    one.deliver();
    const std::string said = one.server.out();
    next = one.shaking->from_server(one.now, std::as_bytes(std::span(said)));
  }
  one.deliver();
  REQUIRE(next == Next::more);
  CHECK(one.server.is_up == (version == TLS1_2_VERSION));
  CHECK(one.run(Next::more) == Next::done);
  CHECK(one.server.is_up);
}

TEST_CASE(
    "tls handshakes: a client that does not accept the certificate is remembered, and the server learns "
    "why") {
  BothSides one;
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  SSL_set_max_proto_version(one.server.ssl(), version);
  const Authorities none(X509_STORE_new());
  const Context distrusting = context_to_server(none.get());
  SSL_set_SSL_CTX(one.client.ssl(), distrusting.get());
  SSL_set1_verify_cert_store(one.client.ssl(), none.get());
  CHECK(one.run() == Next::ends);
  CHECK(one.server.failed);
  CHECK((version == TLS1_2_VERSION ? one.server.heard_alert() : alert_of(one.server.error)) ==
        SSL_AD_UNKNOWN_CA);
  // The near half, which has early keys in TLS 1.3, must not end the connection with close_notify.
  REQUIRE(one.told.size() == (version == TLS1_2_VERSION ? 0 : 2));
  if (version == TLS1_3_VERSION) CHECK(std::holds_alternative<Truncated>(one.told[1]));
  CHECK(one.site.remembered.why(Remembered::of_client(one.ends, "a.corp"), one.now).has_value());
  CHECK(one.remembered().empty());
}

TEST_CASE("tls handshakes: a client that has resumed needs the server's alone, with the session's protocol") {
  BothSides one(BothSides::From::resumed);
  SECTION("the same protocol") {
    CHECK(one.run() == Next::done);
    CHECK(one.shaking->detail() == "TLS for a.corp, decrypted, resumed, [[tls_server]] 1");
    CHECK_FALSE(one.shaking->take_client());
  }
  SECTION("another") {
    one.server.speaks("");
    CHECK(one.run() == Next::failed);
  }
  CHECK(one.told.empty());
  CHECK_FALSE(one.has_served);
}

}  // namespace
}  // namespace longhaul::tls
