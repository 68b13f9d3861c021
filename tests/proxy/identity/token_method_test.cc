// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/token_method.h"

#include <openssl/err.h>
#include <openssl/rsa.h>

#include <array>
#include <catch2/catch.hpp>
#include <vector>

namespace longhaul::identity {
namespace {

using Kind = Signer::Kind;

// Has an RSA key in memory.
class Holder final : public Signer {
 public:
  explicit Holder(EVP_PKEY* key) : key_(key) {}
  bool sign(Kind kind, Bytes data, std::span<unsigned char> out, std::size_t& size) override {
    asked.push_back(kind);
    const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> how(EVP_PKEY_CTX_new(key_, nullptr),
                                                                          EVP_PKEY_CTX_free);
    REQUIRE(EVP_PKEY_sign_init(how.get()) == 1);
    REQUIRE(EVP_PKEY_CTX_set_rsa_padding(how.get(), kind == Kind::rsa_pss      ? RSA_PKCS1_PSS_PADDING
                                                    : kind == Kind::rsa_padded ? RSA_NO_PADDING
                                                                               : RSA_PKCS1_PADDING) == 1);
    if (kind == Kind::rsa_pss) {
      const EVP_MD* const hash = data.size() == 64   ? EVP_sha512()
                                 : data.size() == 48 ? EVP_sha384()
                                                     : EVP_sha256();
      REQUIRE(EVP_PKEY_CTX_set_signature_md(how.get(), hash) == 1);
      REQUIRE(EVP_PKEY_CTX_set_rsa_pss_saltlen(how.get(), RSA_PSS_SALTLEN_DIGEST) == 1);
    }
    size = out.size();
    return EVP_PKEY_sign(how.get(), out.data(), &size, reinterpret_cast<const unsigned char*>(data.data()),
                         data.size()) == 1;
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

TEST_CASE("token method: data for RSA-PSS is padded by the signer or by OpenSSL") {
  const EvpKey real(EVP_RSA_gen(2048)), other(EVP_RSA_gen(2048));
  Holder holder(real.get());
  const EvpKey pads = key_of(holder, real.get(), PssPadding::signer);
  REQUIRE(fits(pads.get(), real.get()));
  CHECK(holder.asked == std::vector{Kind::rsa_pkcs1, Kind::rsa_pss, Kind::rsa_pss, Kind::rsa_pss});
  CHECK_FALSE(fits(pads.get(), other.get()));

  holder.asked.clear();
  const EvpKey does_not = key_of(holder, real.get(), PssPadding::openssl);
  REQUIRE(fits(does_not.get(), real.get()));
  CHECK(holder.asked == std::vector{Kind::rsa_pkcs1, Kind::rsa_padded, Kind::rsa_padded, Kind::rsa_padded});
}

TEST_CASE("token method: PSS other than that of TLS is padded by OpenSSL") {
  const EvpKey real(EVP_RSA_gen(2048));
  Holder holder(real.get());
  const EvpKey key = key_of(holder, real.get(), PssPadding::signer);
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
  const EvpKey key = key_of(holder, real.get(), PssPadding::signer);
  CHECK(signs(ordinary.get(), ordinary.get(), EVP_sha256(), EVP_sha256(), 32));
  CHECK(holder.asked.empty());
}

}  // namespace
}  // namespace longhaul::identity
