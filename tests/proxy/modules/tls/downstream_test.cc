// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/downstream.h"

#include "proxy/modules/tls/decision.h"
#include "proxy/modules/tls/far_site.h"
#include "tests/proxy/modules/tls/shaken.h"

namespace longhaul::tls {
namespace {

const std::string kOffered =
    "\x06"
    "echo/1";

// A key that signs when it is told so.
struct LateKey final : modules::HeldKey {
  explicit LateKey(std::shared_ptr<EVP_PKEY> holds) : key(std::move(holds)) {}
  void belongs_to(EVP_PKEY*) override {}
  void begin() override {}
  bool run(Work work) override {
    if (is_full) return false;
    waiting.push_back(std::move(work));
    return true;
  }
  std::string try_out() override { return {}; }
  void sign(const std::string& failure = {}) {
    REQUIRE(waiting.size() == 1);
    std::exchange(waiting, {})[0](failure.empty() ? key.get() : nullptr, failure);
  }

  std::shared_ptr<EVP_PKEY> key;
  bool is_full = false;
  std::vector<Work> waiting;
};

// A client whose ClientHello was read, and a server that has shaken hands.
struct Serving {
  explicit Serving(const std::shared_ptr<LateKey>& held = nullptr, int version = TLS1_3_VERSION)
      : policy(read_policy(held)), client(client_context.get(), true), shaken(world, entry(), kOffered) {
    SSL_set_max_proto_version(client.ssl(), version);
    SSL_set_tlsext_host_name(client.ssl(), "a.corp");
    SSL_set_alpn_protos(client.ssl(), reinterpret_cast<const unsigned char*>(kOffered.data()),
                        static_cast<unsigned>(kOffered.size()));
    const modules::Ends ends{};
    const std::string said = client.out_after_start();
    Decision decision(site.undecided.get(), *policy, site.remembered, ends);
    REQUIRE(decision.take(now, std::as_bytes(std::span(said))) == Decision::Next::terminated);
    downstream.emplace(decision.take_leg(), policy, entry(), shaken.upstream, nullptr);
  }
  std::shared_ptr<const Policy> read_policy(const std::shared_ptr<LateKey>& held) const {
    std::vector<modules::ServerFiles> tables;
    tables.push_back(table("a.corp", world.shown, world.authority));
    if (held) tables[0].files[1] = {.key = "key", .name = "pkcs11:object=o", .content = {}, .held = held};
    auto read = Policy::read(tables);
    REQUIRE(read.has_value());
    return std::static_pointer_cast<const Policy>(*std::move(read));
  }
  const Entry& entry() const { return *policy->find({}, "a.corp", {}); }
  // To the client; what it says then comes back.
  std::size_t deliver() {
    const Slice said = downstream->leg().drain();
    last_said = Slice::copy_of(said.bytes());
    std::string text(reinterpret_cast<const char*>(said.bytes().data()), said.size());
    client.take(text);
    const std::string answer = client.out();
    downstream->leg().feed(std::as_bytes(std::span(answer)));
    return answer.size();
  }
  Downstream::Next shake() {
    Downstream::Next next = downstream->shake_hands(now);
    for (int rounds = 0; next == Downstream::Next::more && rounds < 10; ++rounds) {
      deliver();
      next = downstream->shake_hands(now);
    }
    if (next == Downstream::Next::done) deliver();
    return next;
  }

  World world;
  Site site;
  modules::TimePoint now{};
  Context client_context = world.client_context();
  std::shared_ptr<const Policy> policy;
  End client;
  Shaken shaken;
  std::optional<Downstream> downstream;
  Slice last_said;
};

TEST_CASE("tls downstream: the client gets the table's certificate and the server's protocol") {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Serving one(nullptr, version);
    REQUIRE(one.shake() == Downstream::Next::done);
    CHECK(one.client.is_up);
    const auto* const chain = SSL_get_peer_cert_chain(one.client.ssl());
    REQUIRE(sk_X509_num(chain) > 0);
    CHECK(X509_cmp(sk_X509_value(chain, 0), one.world.shown.certificate.get()) == 0);
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(one.client.ssl(), &protocol, &size);
    CHECK(std::string(reinterpret_cast<const char*>(protocol), size) == "echo/1");
  }
}

TEST_CASE("tls downstream: the near half gets the secrets first, then sessions of this entry, once") {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Serving one(nullptr, version);
    REQUIRE(one.shake() == Downstream::Next::done);
    const auto given = one.downstream->secrets(one.last_said.bytes(), 5, "a.corp");
    REQUIRE(given);
    CHECK(given->version == (version == TLS1_3_VERSION ? "TLS 1.3" : "TLS 1.2"));
    CHECK(given->suite == SSL_get_cipher_name(one.client.ssl()));
    REQUIRE(given->messages.size() > 1);
    CHECK(given->messages.size() <= 1 + Session::kMost);
    const auto& keys = std::get<Keys>(given->messages[0]);
    CHECK(keys.client_records == 5);
    CHECK(keys.name.size() == 6);
    CHECK(keys.client_secret.size() > 0);
    for (std::size_t i = 1; i < given->messages.size(); ++i)
      CHECK(std::get<Session>(given->messages[i]).entry.size() == one.entry().stamp.size());
  }
}

TEST_CASE("tls downstream: what the client has said is told up to a bound, and then that it is not") {
  Serving one;
  const std::string half(Said::kMostBytes / 2, 'x');
  const Bytes bytes = std::as_bytes(std::span(half));
  for (int i = 0; i < 2; ++i) {
    const auto said = one.downstream->said(bytes);
    REQUIRE(said);
    CHECK(said->is_known);
    CHECK(said->bytes.size() == half.size());
  }
  const auto more = one.downstream->said(bytes.first(1));
  REQUIRE(more);
  CHECK_FALSE(more->is_known);
  CHECK(more->bytes.size() == 0);
  CHECK_FALSE(one.downstream->said(bytes.first(1)));
}

TEST_CASE("tls downstream: what is no handshake ends it, and the error says why") {
  Serving one;
  // Records that are none of a handshake.
  const std::string noise("\x17\x03\x03\x00\x05hello", 10);
  REQUIRE(one.downstream->shake_hands(one.now) == Downstream::Next::more);
  one.downstream->leg().feed(std::as_bytes(std::span(noise)));
  CHECK(one.downstream->shake_hands(one.now) == Downstream::Next::failed);
  CHECK(one.downstream->error() != 0);
  ERR_clear_error();
}

TEST_CASE("tls downstream: the client waits for a key in another device, for five seconds at most") {
  const auto held = std::make_shared<LateKey>(nullptr);
  Serving one(held);
  held->key = one.world.shown.key;
  REQUIRE(one.downstream->shake_hands(one.now) == Downstream::Next::waits);
  CHECK(one.downstream->is_waiting());
  CHECK(one.downstream->on_timeout(one.now + std::chrono::milliseconds(4'999)) == Downstream::Next::waits);
  SECTION("it signs") {
    held->sign();
    REQUIRE(one.downstream->on_timeout(one.now) == Downstream::Next::more);
    CHECK_FALSE(one.downstream->is_waiting());
    one.deliver();
    // The next step needs no signature, and is made there all the same.
    Downstream::Next next = one.downstream->shake_hands(one.now);
    while (next == Downstream::Next::waits) {
      held->sign();
      next = one.downstream->on_timeout(one.now);
    }
    CHECK(next == Downstream::Next::done);
  }
  SECTION("it does not") {
    CHECK(one.downstream->on_timeout(one.now + std::chrono::seconds(5)) == Downstream::Next::no_key);
    CHECK(one.downstream->why() == "its key is not available: the token has not signed within five seconds");
    CHECK_FALSE(one.downstream->is_waiting());
    held->sign();  // nobody waits for it any more
  }
  SECTION("it fails") {
    held->sign("the token is gone");
    CHECK(one.downstream->on_timeout(one.now) == Downstream::Next::no_key);
    CHECK(one.downstream->why() == "its key is not available: the token is gone");
    CHECK(one.downstream->leg().drain().size() == 0);
  }
}

TEST_CASE("tls downstream: a handshake for which the key has no place does not wait") {
  const auto held = std::make_shared<LateKey>(nullptr);
  held->is_full = true;
  Serving one(held);
  CHECK(one.downstream->shake_hands(one.now) == Downstream::Next::no_key);
  CHECK(one.downstream->why() == "its key is not available: too many handshakes are waiting for the token");
}

}  // namespace
}  // namespace longhaul::tls
