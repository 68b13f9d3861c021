// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_keys.h"

#include <set>

#include "proxy/identity/keygen.h"
#include "proxy/link/golden.h"
#include "proxy/link/io/tls_engine.h"
#include "proxy/link/udp/packet_cipher.h"
#include "proxy/temporary_folder.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;

namespace {

TrafficSecret secret_of(const std::string& hex) {
  Buffer bytes = golden::from_hex(hex);
  TrafficSecret secret;
  REQUIRE(bytes.size() == secret.bytes.size());
  std::copy(bytes.begin(), bytes.end(), secret.bytes.begin());
  return secret;
}

std::string expanded(const TrafficSecret& secret, std::string_view label, std::size_t size) {
  Buffer out(size);
  hkdf_expand_label(secret, label, out);
  return golden::to_hex(out);
}

identity::Identity made_identity(const TemporaryFolder& folder, const std::string& name) {
  auto made = identity::keygen(name, folder.path());
  return identity::load(config::Identity{made.certificate, made.private_key});
}

// Two sites that shake hands in memory.
struct Sites {
  explicit Sites(const TemporaryFolder& folder)
      : identity_a(made_identity(folder, "a")),
        identity_b(made_identity(folder, "b")),
        context_a(identity_a),
        context_b(identity_b) {}

  struct Connection {
    TlsEngine dialler, acceptor;
    explicit Connection(Sites& pair)
        : dialler(pair.context_a, Side::dialler, expects(pair.identity_b)),
          acceptor(pair.context_b, Side::acceptor, expects(pair.identity_a)) {}
    static TlsEngine::FindKey expects(const identity::Identity& peer) {
      return [key = peer.fingerprint](const std::string& shown) {
        return shown == key ? std::optional(TlsEngine::KnownKey{}) : std::nullopt;
      };
    }
    void shake_hands() {
      REQUIRE(dialler.send({}).has_value());
      Buffer plain;
      for (int turns = 0; turns < 10 && !(dialler.established() && acceptor.established()); ++turns)
        for (auto [from, to] : {std::pair{&dialler, &acceptor}, std::pair{&acceptor, &dialler}}) {
          Buffer bytes;
          bytes.swap(from->outgoing());
          REQUIRE(to->receive(bytes, plain).has_value());
        }
      REQUIRE(dialler.established());
      REQUIRE(acceptor.established());
    }
  };

  identity::Identity identity_a, identity_b;
  TlsContext context_a, context_b;
};

}  // namespace

TEST_CASE("keys are expanded as in RFC 9001, appendices A.1 and A.5") {
  auto initial = secret_of("c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea");
  CHECK(expanded(initial, "quic key", 16) == "1f369613dd76d5467730efcbe3b1a22d");
  CHECK(expanded(initial, "quic iv", 12) == "fa044b2f42a3fd3b46fb255c");
  auto secret = secret_of("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
  CHECK(expanded(secret, "quic key", 32) ==
        "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8");
  CHECK(expanded(secret, "quic iv", 12) == "e0459b3474bdd0e44a41c144");
  CHECK(expanded(secret, "quic ku", 32) ==
        "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9");
}

TEST_CASE("nonces are made from packet numbers as in RFC 9001, appendix A.5") {
  PacketKey key;
  Buffer bytes = golden::from_hex("c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8");
  Buffer iv = golden::from_hex("e0459b3474bdd0e44a41c144");
  std::copy(bytes.begin(), bytes.end(), key.key.bytes.begin());
  std::copy(iv.begin(), iv.end(), key.iv.begin());
  Buffer header = golden::from_hex("4200bff4"), text = golden::from_hex("01");
  std::array<std::byte, kPacketTagBytes> tag;
  PacketCipher(key, Cipher::chacha20_poly1305, PacketCipher::Use::seal)
      .seal(PacketNumber(654'360'564), header, text, tag);
  CHECK(golden::to_hex(text) + golden::to_hex(tag) == "655e5cd55c41f69080575d7999c25a5bfb");
}

TEST_CASE("ids, secrets and keys match the golden vectors") {
  auto vectors = golden::read("packets.txt");
  Token session;
  for (std::size_t i = 0; i < session.size(); ++i) session[i] = std::byte(0xa0 + i);
  CHECK(golden::to_hex(exporter_context(session, 300)) == vectors["context"]);
  CHECK(golden::to_hex(exporter_context(session, 300, 2)) == vectors["path_context"]);
  CHECK(kPathExporterLabel == "EXPORTER-longhaul-udp-path");

  CarrierKeys keys = keys_from_exporter(golden::from_hex(vectors["exported"]));
  for (auto [who, side] : {std::pair{"dialler", Side::dialler}, std::pair{"acceptor", Side::acceptor}}) {
    INFO(who);
    const DirectionKeys& direction = keys.sent_by(side);
    const DirectionKeys& other = keys.received_by(side == Side::dialler ? Side::acceptor : Side::dialler);
    CHECK(&direction == &other);
    auto vector = [&](const std::string& name) { return vectors[std::string(who) + name]; };
    CHECK(golden::to_hex(direction.id.bytes) == vector("_id"));
    CHECK(golden::to_hex(direction.secret.bytes) == vector("_secret"));
    CHECK(golden::to_hex(next_secret(direction.secret).bytes) == vector("_next_secret"));
    PacketKey aes = packet_key(direction.secret, Cipher::aes_128_gcm);
    CHECK(golden::to_hex(aes.iv) == vector("_iv"));
    CHECK(golden::to_hex(Bytes(aes.key.bytes).first(16)) == vector("_aes_key"));
    CHECK(golden::to_hex(packet_key(direction.secret, Cipher::chacha20_poly1305).key.bytes) ==
          vector("_chacha_key"));
  }
}

TEST_CASE("both ends of a TLS connection export the same keys, different by session, epoch and connection") {
  TemporaryFolder folder;
  Sites sites(folder);
  std::set<std::string> seen;
  for (int round = 0; round < 2; ++round) {
    Sites::Connection connection(sites);
    CHECK_FALSE(connection.dialler.export_keying_material(kExporterLabel, {}, kExportedBytes).has_value());
    connection.shake_hands();
    for (unsigned session : {0u, 7u})
      for (std::uint64_t epoch : {1, 2}) {
        Buffer context = exporter_context(Token{std::byte(session)}, epoch);
        auto ours = connection.dialler.export_keying_material(kExporterLabel, context, kExportedBytes);
        auto theirs = connection.acceptor.export_keying_material(kExporterLabel, context, kExportedBytes);
        REQUIRE(ours.has_value());
        REQUIRE(theirs.has_value());
        CHECK(*ours == *theirs);
        CHECK(ours->size() == kExportedBytes);
        seen.insert(golden::to_hex(*ours));
        CarrierKeys keys = keys_from_exporter(*ours);
        CHECK(keys.dialler_to_acceptor.id != keys.acceptor_to_dialler.id);
        CHECK_FALSE(keys.dialler_to_acceptor.secret == keys.acceptor_to_dialler.secret);
      }
    // The connection goes on to carry frames.
    Buffer plain;
    REQUIRE(connection.dialler.send(as_bytes("hello")).has_value());
    REQUIRE(connection.acceptor.receive(connection.dialler.outgoing(), plain).has_value());
    CHECK(as_text(plain) == "hello");
  }
  CHECK(seen.size() == 8);
}

TEST_CASE("AES is used if both sides prefer it, and an unknown offer or answer disables UDP") {
  constexpr Cipher aes = Cipher::aes_128_gcm, chacha = Cipher::chacha20_poly1305;
  auto agreed = [](Cipher dialler, Cipher acceptor) {
    std::uint8_t offer = ciphers_to_offer(dialler);
    auto answer = cipher_to_answer(offer, acceptor);
    REQUIRE(answer);
    CHECK(cipher_answered(static_cast<std::uint8_t>(*answer), offer) == answer);
    return *answer;
  };
  CHECK(agreed(aes, aes) == aes);
  CHECK(agreed(aes, chacha) == chacha);
  CHECK(agreed(chacha, aes) == chacha);
  CHECK(agreed(chacha, chacha) == chacha);

  CHECK_FALSE(cipher_to_answer(0, aes));
  CHECK_FALSE(cipher_to_answer(0x80, aes));
  CHECK(cipher_to_answer(0x81, chacha) == aes);  // a bit of a later release is passed over
  CHECK_FALSE(cipher_answered(0, 3));
  CHECK_FALSE(cipher_answered(3, 3));
  CHECK_FALSE(cipher_answered(1, 2));
  CHECK_FALSE(cipher_answered(4, 7));
}
