// SPDX-License-Identifier: Apache-2.0
// The vector cipher against OpenSSL's, which is the measure; without a processor for it there is nothing to
// test.
#include "crypto/aead.h"

#include <openssl/objects.h>

#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace longhaul;

namespace {

using Text = std::vector<unsigned char>;

Text some(std::size_t size, std::mt19937& random) {
  Text text(size);
  for (auto& byte : text) byte = static_cast<unsigned char>(random());
  return text;
}

// Through the cipher in pieces of random sizes, or at once; empty when it says no.
Text run(Aead& cipher, Aead::Use use, const Text& nonce, const Text& head, const Text& in, Text& tag,
         std::mt19937& random) {
  Text out = in;
  const Aead::Nonce number(nonce.data(), 12);
  if (use == Aead::Use::seal) tag.resize(kAeadTagBytes);
  if (random() % 2) {
    const auto text = std::as_writable_bytes(std::span(out));
    if (use == Aead::Use::open) return cipher.open_whole(number, head, text, tag.data()) ? out : Text{};
    REQUIRE(cipher.seal_whole(number, head, text, tag.data()));
    return out;
  }
  REQUIRE(cipher.start(number, head));
  for (std::size_t at = 0; at < in.size();) {
    std::size_t size = std::min<std::size_t>(in.size() - at, random() % 3 ? random() % 40 : random() % 5000);
    REQUIRE(cipher.add(std::as_bytes(std::span(in).subspan(at, size)), out.data() + at));
    at += size;
  }
  if (use == Aead::Use::open) return cipher.open(tag.data()) ? out : Text{};
  REQUIRE(cipher.seal(tag.data()));
  return out;
}

}  // namespace

TEST_CASE("the vector cipher and OpenSSL open each other's packets, split in any way") {
  const auto [nid, key_bytes] =
      GENERATE(std::pair{NID_aes_128_gcm, std::size_t{16}}, std::pair{NID_aes_256_gcm, std::size_t{32}},
               std::pair{NID_chacha20_poly1305, std::size_t{32}});
  std::mt19937 random(7);
  const Text key = some(key_bytes, random);
  if (!make_vector_aead(nid, key, Aead::Use::seal)) {
    WARN("no vector cipher on this machine");
    return;
  }
  for (const auto& [sealing, opening] :
       {std::pair{&make_vector_aead, &make_openssl_aead}, std::pair{&make_openssl_aead, &make_vector_aead},
        std::pair{&make_vector_aead, &make_vector_aead}}) {
    auto sealer = (*sealing)(nid, key, Aead::Use::seal);
    auto opener = (*opening)(nid, key, Aead::Use::open);
    for (int i = 0; i < 800; ++i) {
      // Heads of records, of packets, and others.
      const Text nonce = some(12, random),
                 head = some(i % 3 ? i % 3 == 1 ? 5 : 13 : 1 + random() % 80, random);
      const Text plain = some(i < 100 ? static_cast<std::size_t>(i + 1) : 1 + random() % 17'000, random);
      Text tag;
      Text sealed = run(*sealer, Aead::Use::seal, nonce, head, plain, tag, random);
      REQUIRE(run(*opener, Aead::Use::open, nonce, head, sealed, tag, random) == plain);
      // A bit of anything changed.
      Text other_nonce = nonce, other_head = head, other_tag = tag;
      Text& other = i % 4 == 0 ? sealed : i % 4 == 1 ? other_nonce : i % 4 == 2 ? other_head : other_tag;
      other[random() % other.size()] ^= static_cast<unsigned char>(1 << random() % 8);
      REQUIRE(run(*opener, Aead::Use::open, other_nonce, other_head, sealed, other_tag, random).empty());
    }
  }
}

TEST_CASE("the vector functions are used only for the ciphers that they implement") {
  const std::array<unsigned char, 32> key{};
  CHECK(make_vector_aead(NID_aes_256_ccm, key, Aead::Use::seal) == nullptr);
}
