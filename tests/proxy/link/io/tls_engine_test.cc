// SPDX-License-Identifier: Apache-2.0
// The engine against libssl's own record layer, which is the measure of what TLS 1.3 is, and against itself.
#include "proxy/link/io/tls_engine.h"

#include <catch2/catch.hpp>
#include <random>

#include "proxy/identity/keygen.h"
#include "proxy/temporary_folder.h"

using namespace longhaul;
using link::Side;
using link::TlsContext;
using link::TlsEngine;

namespace {

TlsContext make_context() {
  const TemporaryFolder folder;
  const auto made = identity::keygen("site", folder.path());
  return TlsContext(identity::load(config::Identity{made.certificate, made.private_key}));
}

using Known = std::optional<TlsEngine::KnownKey>;
Known any_key(const std::string&) { return TlsEngine::KnownKey{}; }

Buffer some_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Buffer bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// One end of a connection that libssl serves from the first byte to the last.
class Libssl {
 public:
  Libssl(const TlsContext& context, Side side, const char* ciphers) : ssl_(SSL_new(context.get())) {
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    REQUIRE(SSL_set_ciphersuites(ssl_.get(), ciphers) == 1);
    SSL_set_verify(ssl_.get(), SSL_VERIFY_NONE, nullptr);  // which is the engines' affair
    side == Side::dialler ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
  }
  SSL* get() { return ssl_.get(); }

  void give(Bytes bytes) {
    if (!bytes.empty()) BIO_write(SSL_get_rbio(get()), bytes.data(), static_cast<int>(bytes.size()));
  }
  Buffer take() {
    Buffer bytes(static_cast<std::size_t>(BIO_pending(SSL_get_wbio(get()))));
    if (!bytes.empty()) BIO_read(SSL_get_wbio(get()), bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  void write(Bytes plain) {
    std::size_t written = 0;
    while (!plain.empty()) {
      REQUIRE(SSL_write_ex(get(), plain.data(), plain.size(), &written) == 1);
      plain = plain.subspan(written);
    }
  }
  // All that can be read; `end` is why there is no more.
  Buffer read(int& end) {
    Buffer plain;
    for (;;) {
      std::byte piece[5000];
      std::size_t size = 0;
      int done = SSL_read_ex(get(), piece, sizeof piece, &size);
      if (done != 1) return end = SSL_get_error(get(), done), plain;
      append(plain, Bytes(piece, size));
    }
  }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL, Free> ssl_;
};

// In pieces of `step` bytes, as a network may bring them.
Result<void> deliver(const Buffer& wire, TlsEngine& to, Buffer& plain, std::size_t step) {
  for (std::size_t at = 0; at < wire.size(); at += step)
    if (auto taken = to.receive(Bytes(wire).subspan(at, std::min(step, wire.size() - at)), plain); !taken)
      return taken;
  return {};
}

Buffer take(TlsEngine& engine) { return std::exchange(engine.outgoing(), {}); }

void shake_hands(TlsEngine& engine, Libssl& peer) {
  REQUIRE(engine.send({}));
  for (int turn = 0; turn < 6; ++turn) {
    peer.give(take(engine));
    SSL_do_handshake(peer.get());
    Buffer plain;
    REQUIRE(deliver(peer.take(), engine, plain, 7));
    CHECK(plain.empty());
  }
  REQUIRE(engine.established());
  REQUIRE(SSL_is_init_finished(peer.get()));
}

void exchange(TlsEngine& engine, Libssl& peer, std::size_t size, std::size_t step) {
  const Buffer there = some_bytes(size, 1), back = some_bytes(size, 2);
  // Cut anywhere, a piece without bytes among them.
  const std::array pieces{Bytes(there).first(size / 3), Bytes{}, Bytes(there).subspan(size / 3, size / 7),
                          Bytes(there).subspan(size / 3 + size / 7)};
  REQUIRE(engine.send_pieces(pieces));
  peer.give(take(engine));
  int end = 0;
  CHECK(peer.read(end) == there);
  CHECK(end == SSL_ERROR_WANT_READ);
  peer.write(back);
  Buffer plain;
  REQUIRE(deliver(peer.take(), engine, plain, step));
  CHECK(plain == back);
}

// Two engines after their handshake.
struct Engines {
  TlsContext context = make_context();
  TlsEngine dialler{context, Side::dialler, any_key}, acceptor{context, Side::acceptor, any_key};
  Engines() {
    Buffer plain;
    REQUIRE(dialler.send({}));
    while (!dialler.outgoing().empty() || !acceptor.outgoing().empty()) {
      REQUIRE(acceptor.receive(take(dialler), plain));
      REQUIRE(dialler.receive(take(acceptor), plain));
    }
    REQUIRE(dialler.established());
    REQUIRE(acceptor.established());
    REQUIRE(plain.empty());
  }
};

}  // namespace

TEST_CASE("an engine speaks TLS 1.3 with libssl in every cipher, on either side, across key updates") {
  const TlsContext context = make_context();
  const auto* ciphers =
      GENERATE("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_256_GCM_SHA384");
  const Side side = GENERATE(Side::dialler, Side::acceptor);
  TlsEngine engine(context, side, any_key);
  Libssl peer(context, side == Side::dialler ? Side::acceptor : Side::dialler, ciphers);
  if (side == Side::acceptor) SSL_do_handshake(peer.get());
  shake_hands(engine, peer);
  CHECK(std::string(SSL_get_cipher_name(peer.get())) == ciphers);
  exchange(engine, peer, 1, 1);
  exchange(engine, peer, 100'000, 1'000);
  exchange(engine, peer, 3 * 16'384, 40'000);
  exchange(engine, peer, 50, 1);

  REQUIRE(engine.renew_key());
  exchange(engine, peer, 20'000, 3'000);
  // libssl asks the engine to change its own key too, which it does before it sends anything else.
  REQUIRE(SSL_key_update(peer.get(), SSL_KEY_UPDATE_REQUESTED) == 1);
  peer.write(as_bytes("after the update"));
  Buffer plain;
  REQUIRE(deliver(peer.take(), engine, plain, 1));
  CHECK(as_text(plain) == "after the update");
  exchange(engine, peer, 20'000, 3'000);

  engine.close();
  peer.give(take(engine));
  int end = 0;
  peer.read(end);
  CHECK(end == SSL_ERROR_ZERO_RETURN);
  SSL_shutdown(peer.get());
  REQUIRE(deliver(peer.take(), engine, plain, 1));
  CHECK(engine.closed_by_peer());
}

TEST_CASE("a refusal by libssl is reported by name") {
  const TlsContext context = make_context();
  TlsEngine engine(context, Side::dialler, any_key);
  Libssl peer(context, Side::acceptor, "TLS_AES_128_GCM_SHA256");
  shake_hands(engine, peer);
  REQUIRE(engine.send(as_bytes("some bytes")));
  Buffer wire = take(engine);
  wire.back() ^= std::byte{1};
  peer.give(wire);
  int end = 0;
  peer.read(end);
  CHECK(end == SSL_ERROR_SSL);
  Buffer plain;
  CHECK_FALSE(engine.receive(peer.take(), plain));
  CHECK(engine.error_text() == "TLS alert from the peer: bad record mac");
}

TEST_CASE("a record that was modified, repeated, omitted or moved ends the connection") {
  Engines pair;
  REQUIRE(pair.dialler.send(as_bytes("one")));
  const Buffer one = take(pair.dialler);
  REQUIRE(pair.dialler.send(as_bytes("two")));
  const Buffer two = take(pair.dialler);
  Buffer plain, wire = one;
  const auto refused = [&] { return !pair.acceptor.receive(wire, plain) && plain.empty(); };
  SECTION("changed") {
    const std::size_t at = GENERATE(0, 1, 5, 8, 9, 24);
    REQUIRE(at < wire.size());
    wire[at] ^= std::byte{4};
    CHECK(refused());
    CHECK_FALSE(pair.acceptor.outgoing().empty());  // an alert
  }
  SECTION("its length changed") {
    wire[4] = std::byte{16};  // no room for anything but the tag
    CHECK(refused());
  }
  SECTION("longer than any record may be") {
    wire[3] = std::byte{0x50};
    CHECK(refused());
  }
  SECTION("left out") {
    wire = two;
    CHECK(refused());
  }
  SECTION("repeated") {
    REQUIRE(pair.acceptor.receive(wire, plain));
    CHECK(as_text(plain) == "one");
    plain.clear();
    CHECK(refused());
  }
  SECTION("sent back") {
    CHECK_FALSE(pair.dialler.receive(wire, plain));
    CHECK(plain.empty());
  }
  SECTION("neither") {
    append(wire, two);
    REQUIRE(pair.acceptor.receive(wire, plain));
    CHECK(as_text(plain) == "onetwo");
  }
}

TEST_CASE("data before a broken record is delivered, and none after the peer's close") {
  Engines pair;
  Buffer plain;
  SECTION("a broken record") {
    REQUIRE(pair.dialler.send(as_bytes("good")));
    append(pair.dialler.outgoing(), as_bytes("no record at all"));
    CHECK_FALSE(pair.acceptor.receive(take(pair.dialler), plain));
  }
  SECTION("the last word") {
    REQUIRE(pair.dialler.send(as_bytes("good")));
    pair.dialler.close();
    REQUIRE(pair.dialler.send(as_bytes("late")));
    REQUIRE(pair.acceptor.receive(take(pair.dialler), plain));
    CHECK(pair.acceptor.closed_by_peer());
  }
  CHECK(as_text(plain) == "good");
}

TEST_CASE("bytes that arrive together with the end of the handshake are not lost") {
  const TlsContext context = make_context();
  TlsEngine dialler(context, Side::dialler, any_key), acceptor(context, Side::acceptor, any_key);
  Buffer plain;
  REQUIRE(dialler.send({}));
  REQUIRE(acceptor.receive(take(dialler), plain));
  REQUIRE(dialler.receive(take(acceptor), plain));
  REQUIRE(dialler.established());
  REQUIRE(dialler.send(as_bytes("early")));
  REQUIRE(acceptor.receive(take(dialler), plain));
  CHECK(as_text(plain) == "early");
}

namespace {

// Runs a handshake until neither says anything more, and gives what the first of the two to fail said.
Result<void> run(TlsEngine& dialler, TlsEngine& acceptor) {
  Buffer plain;
  Result<void> done = dialler.send({});
  while (done && (!dialler.outgoing().empty() || !acceptor.outgoing().empty())) {
    done = acceptor.receive(take(dialler), plain);
    if (done) done = dialler.receive(take(acceptor), plain);
  }
  return done;
}

}  // namespace

TEST_CASE("a dialler shows its own key only to the peer that it expects") {
  const TlsContext here = make_context(), there = make_context();
  std::string shown;
  TlsEngine dialler(here, Side::dialler, [&](const std::string& key) { return shown = key, Known(); });
  bool asked = false;
  TlsEngine acceptor(there, Side::acceptor,
                     [&](const std::string& key) { return asked = true, any_key(key); });
  CHECK_FALSE(run(dialler, acceptor));
  CHECK(shown == there.fingerprint());
  CHECK(dialler.refusal() == link::Refusal::unknown_key);
  CHECK(dialler.peer_fingerprint() == there.fingerprint());
  CHECK_FALSE(asked);
  Buffer plain;
  CHECK_FALSE(acceptor.receive(take(dialler), plain));  // the alert
  CHECK(acceptor.refusal() == link::Refusal::rejected_by_peer);
}

TEST_CASE("an acceptor refuses an unknown key, and the dialler is informed") {
  const TlsContext here = make_context(), there = make_context();
  TlsEngine dialler(here, Side::dialler, any_key);
  TlsEngine acceptor(there, Side::acceptor, [&](const std::string& key) {
    return key == here.fingerprint() ? Known() : any_key(key);
  });
  CHECK_FALSE(run(dialler, acceptor));
  CHECK(acceptor.refusal() == link::Refusal::unknown_key);
  CHECK(acceptor.peer_fingerprint() == here.fingerprint());
  REQUIRE(dialler.established());
  Buffer plain;
  CHECK_FALSE(dialler.receive(take(acceptor), plain));
  CHECK(dialler.refusal() == link::Refusal::rejected_by_peer);
}

TEST_CASE("an unknown key is refused before its signature is verified") {
  const TlsContext context = make_context(), there = make_context();
  TlsEngine acceptor(there, Side::acceptor, [](const std::string&) { return Known(); });
  Libssl peer(context, Side::dialler, "TLS_AES_128_GCM_SHA256");
  Buffer plain;
  SSL_do_handshake(peer.get());
  REQUIRE(acceptor.receive(peer.take(), plain));
  peer.give(take(acceptor));
  REQUIRE(SSL_do_handshake(peer.get()) == 1);
  // Certificate, CertificateVerify and Finished, each in a record of its own: the first is enough for a
  // refusal.
  const Buffer flight = peer.take();
  std::size_t at = 0, records = 0;
  Result<void> taken = Result<void>{};
  while (taken && at < flight.size()) {
    const std::size_t size = 5 + (std::to_integer<std::size_t>(flight[at + 3]) << 8) +
                             std::to_integer<std::size_t>(flight[at + 4]);
    taken = acceptor.receive(Bytes(flight).subspan(at, size), plain);
    at += size;
    ++records;
  }
  CHECK_FALSE(taken);
  CHECK(acceptor.refusal() == link::Refusal::unknown_key);
  CHECK(at < flight.size());
}

TEST_CASE("only X25519 and P-256 are negotiated, and only with short handshakes") {
  const TlsContext context = make_context();
  const auto refused_with = [&](const char* groups) {
    TlsEngine acceptor(context, Side::acceptor, any_key);
    Libssl peer(context, Side::dialler, "TLS_AES_128_GCM_SHA256");
    REQUIRE(SSL_set1_groups_list(peer.get(), groups) == 1);
    SSL_do_handshake(peer.get());
    Buffer plain;
    const auto taken = acceptor.receive(peer.take(), plain);
    return taken ? std::string() : std::string(link::explain(acceptor.refusal()).code);
  };
  CHECK(refused_with("X25519") == "");
  CHECK(refused_with("P-256") == "");
  for (const char* groups : {"ffdhe8192", "ffdhe2048", "P-521", "P-384", "X448"}) {
    INFO(groups);
    CHECK(refused_with(groups) == "unsupported");
  }
  TlsEngine acceptor(context, Side::acceptor, any_key);
  Buffer plain, hello = {std::byte{22}, std::byte{3}, std::byte{1},   std::byte{64}, std::byte{0},
                         std::byte{1},  std::byte{0}, std::byte{255}, std::byte{0}};
  hello.resize(5 + 16'384);
  REQUIRE(acceptor.receive(Bytes(hello).first(hello.size() - 10), plain));
  CHECK_FALSE(acceptor.receive(Bytes(hello).last(10), plain));
  CHECK(acceptor.refusal() == link::Refusal::too_long);
}

TEST_CASE("the certificate shown to strangers contains no name") {
  const TemporaryFolder folder;
  const auto made = identity::keygen("branch-in-oslo", folder.path());
  const TlsContext context(identity::load(config::Identity{made.certificate, made.private_key}));
  X509* shown = SSL_CTX_get0_certificate(context.get());
  CHECK(identity::fingerprint_of(shown).value() == made.fingerprint);
  unsigned char* der = nullptr;
  const int size = i2d_X509(shown, &der);
  const std::string text(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  CHECK(text.find("oslo") == std::string::npos);
  CHECK(X509_NAME_entry_count(X509_get_subject_name(shown)) == 0);
}

TEST_CASE("a preshared key protects the records after the handshake, and a different one is reported") {
  const TlsContext context = make_context();
  const auto with = [](unsigned seed) {
    auto key = std::make_shared<identity::PresharedKey>();
    key->bytes.fill(static_cast<std::byte>(seed));
    return [key, seed](const std::string&) { return Known(TlsEngine::KnownKey{seed == 0 ? nullptr : key}); };
  };
  const unsigned one = GENERATE(0u, 1u), two = GENERATE(0u, 1u, 2u);
  TlsEngine dialler(context, Side::dialler, with(one)), acceptor(context, Side::acceptor, with(two));
  REQUIRE(run(dialler, acceptor));
  REQUIRE(dialler.established());
  REQUIRE(acceptor.established());
  const auto exported = [](const TlsEngine& engine) {
    return *engine.export_keying_material("EXPERIMENTAL test", as_bytes("context"), 64);
  };
  CHECK((exported(dialler) == exported(acceptor)) == (one == two));
  Buffer plain;
  REQUIRE(dialler.send(as_bytes("hello")));
  const auto taken = acceptor.receive(take(dialler), plain);
  CHECK(taken.has_value() == (one == two));
  if (one == two) {
    CHECK(as_text(plain) == "hello");
    REQUIRE(dialler.renew_key());
    REQUIRE(dialler.send(as_bytes(" again")));
    REQUIRE(acceptor.receive(take(dialler), plain));
    CHECK(as_text(plain) == "hello again");
  } else {
    CHECK(plain.empty());
    CHECK(acceptor.error_text().starts_with("the first record cannot be decrypted: preshared_key_file"));
    CHECK_FALSE(dialler.receive(take(acceptor), plain));
    CHECK(dialler.error_text().starts_with("the first record cannot be decrypted: preshared_key_file"));
  }
}
