// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/token_method.h"

#include <openssl/err.h>
#include <openssl/rsa.h>

#include <array>
#include <catch2/catch.hpp>
#include <tuple>
#include <vector>

namespace longhaul::identity {
namespace {

using Kind = Signer::Kind;

// Has an RSA key in memory.
class Holder final : public Signer {
 public:
  explicit Holder(EVP_PKEY* key) : key_(key) {}
  bool sign(Kind kind, int hash, Bytes data, std::span<unsigned char> out, std::size_t& size) override {
    asked.push_back(kind);
    const bool is_pss = kind == Kind::rsa_pss || kind == Kind::rsa_pss_text;
    const bool is_text = kind == Kind::rsa_pkcs1_text || kind == Kind::rsa_pss_text;
    const auto pad = [&](EVP_PKEY_CTX* how) {
      REQUIRE(EVP_PKEY_CTX_set_rsa_padding(how, is_pss                     ? RSA_PKCS1_PSS_PADDING
                                                : kind == Kind::rsa_padded ? RSA_NO_PADDING
                                                                           : RSA_PKCS1_PADDING) == 1);
      if (is_pss) REQUIRE(EVP_PKEY_CTX_set_rsa_pss_saltlen(how, RSA_PSS_SALTLEN_DIGEST) == 1);
    };
    REQUIRE((hash == NID_undef) == (kind == Kind::rsa_pkcs1 || kind == Kind::rsa_padded));
    const auto* const bytes = reinterpret_cast<const unsigned char*>(data.data());
    size = out.size();
    if (is_text) {
      const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> signing(EVP_MD_CTX_new(),
                                                                            EVP_MD_CTX_free);
      EVP_PKEY_CTX* how = nullptr;
      REQUIRE(EVP_DigestSignInit(signing.get(), &how, EVP_get_digestbynid(hash), nullptr, key_) == 1);
      pad(how);
      return EVP_DigestSign(signing.get(), out.data(), &size, bytes, data.size()) == 1;
    }
    const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> how(EVP_PKEY_CTX_new(key_, nullptr),
                                                                          EVP_PKEY_CTX_free);
    REQUIRE(EVP_PKEY_sign_init(how.get()) == 1);
    pad(how.get());
    if (is_pss) REQUIRE(EVP_PKEY_CTX_set_signature_md(how.get(), EVP_get_digestbynid(hash)) == 1);
    return EVP_PKEY_sign(how.get(), out.data(), &size, bytes, data.size()) == 1;
  }
  std::vector<Kind> asked;

 private:
  EVP_PKEY* key_;
};

// With PSS, as `hash`, `of_mask` and `salt` say.
bool signs(EVP_PKEY* key, EVP_PKEY* public_key, const EVP_MD* hash, const EVP_MD* of_mask, int salt) {
  const std::array<unsigned char, 3> text{1, 2, 3};
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> signing(EVP_MD_CTX_new(), EVP_MD_CTX_free),
      verifying(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  const auto pad = [&](EVP_PKEY_CTX* how) {
    return EVP_PKEY_CTX_set_rsa_padding(how, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_mgf1_md(how, of_mask) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(how, salt) == 1;
  };
  EVP_PKEY_CTX* how = nullptr;
  std::array<unsigned char, 256> signature{};
  std::size_t size = signature.size();
  REQUIRE(EVP_DigestSignInit(signing.get(), &how, hash, nullptr, key) == 1);
  REQUIRE(pad(how));
  if (EVP_DigestSign(signing.get(), signature.data(), &size, text.data(), text.size()) != 1) return false;
  REQUIRE(EVP_DigestVerifyInit(verifying.get(), &how, hash, nullptr, public_key) == 1);
  REQUIRE(pad(how));
  return EVP_DigestVerify(verifying.get(), signature.data(), size, text.data(), text.size()) == 1;
}

TEST_CASE("token method: a signer of RSA pads itself, hashes itself, or does neither for PSS") {
  const EvpKey real(EVP_RSA_gen(2048)), other(EVP_RSA_gen(2048));
  Holder holder(real.get());
  for (const auto& [input, pkcs1, pss] : {std::tuple(RsaInput::digests, Kind::rsa_pkcs1, Kind::rsa_pss),
                                          {RsaInput::padded, Kind::rsa_pkcs1, Kind::rsa_padded},
                                          {RsaInput::texts, Kind::rsa_pkcs1_text, Kind::rsa_pss_text}}) {
    holder.asked.clear();
    const EvpKey key = key_of(holder, real.get(), input);
    REQUIRE(fits(key.get(), real.get()));
    CHECK(holder.asked == std::vector{pkcs1, pkcs1, pkcs1, pss, pss, pss});
    CHECK_FALSE(fits(key.get(), other.get()));
  }
}

TEST_CASE("token method: what a signer of texts cannot do fails, and says how large a signature is") {
  const EvpKey real(EVP_RSA_gen(2048));
  Holder holder(real.get());
  const EvpKey key = key_of(holder, real.get(), RsaInput::texts);
  CHECK_FALSE(signs(key.get(), real.get(), EVP_sha256(), EVP_sha256(), 20));
  CHECK_FALSE(signs(key.get(), real.get(), EVP_sha256(), EVP_sha384(), 32));
  CHECK_FALSE(signs(key.get(), real.get(), EVP_sha3_256(), EVP_sha3_256(), 32));
  CHECK(holder.asked.empty());
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> signing(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  REQUIRE(EVP_DigestSignInit(signing.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1);
  const std::array<unsigned char, 3> text{1, 2, 3};
  std::array<unsigned char, 256> signature{};
  std::size_t size = 0;
  CHECK(EVP_DigestSign(signing.get(), nullptr, &size, text.data(), text.size()) == 1);
  CHECK(size == 256);
  size = 255;
  CHECK(EVP_DigestSign(signing.get(), signature.data(), &size, text.data(), text.size()) != 1);
  CHECK(holder.asked.empty());
  ERR_clear_error();
}

TEST_CASE("token method: PSS other than that of TLS is padded by OpenSSL") {
  const EvpKey real(EVP_RSA_gen(2048));
  Holder holder(real.get());
  const EvpKey key = key_of(holder, real.get(), RsaInput::digests);
  CHECK(signs(key.get(), real.get(), EVP_sha256(), EVP_sha256(), 32));
  CHECK(holder.asked == std::vector{Kind::rsa_pss});
  holder.asked.clear();
  CHECK(signs(key.get(), real.get(), EVP_sha256(), EVP_sha256(), 20));
  CHECK(signs(key.get(), real.get(), EVP_sha256(), EVP_sha384(), 32));
  CHECK(signs(key.get(), real.get(), EVP_sha3_256(), EVP_sha3_256(), 32));
  CHECK(holder.asked == std::vector{Kind::rsa_padded, Kind::rsa_padded, Kind::rsa_padded});
  ERR_clear_error();
}

// Not other keys, which may be used at the same time.
TEST_CASE("token method: other RSA keys sign as before") {
  const EvpKey real(EVP_RSA_gen(2048)), ordinary(EVP_RSA_gen(2048));
  Holder holder(real.get());
  const EvpKey key = key_of(holder, real.get(), RsaInput::digests);
  CHECK(signs(ordinary.get(), ordinary.get(), EVP_sha256(), EVP_sha256(), 32));
  CHECK(holder.asked.empty());
}

}  // namespace
}  // namespace longhaul::identity
