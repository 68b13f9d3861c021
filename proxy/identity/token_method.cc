// SPDX-License-Identifier: Apache-2.0
// Uses the methods of RSA and EC_KEY, which OpenSSL 3.0 deprecates but still has: a provider would need
// several times as much code. OpenSSL does the padding of RSA-PSS, so a token must sign padded data
// (CKM_RSA_X_509).
#include "proxy/identity/token_method.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>

#include <array>
#include <vector>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace longhaul::identity {
namespace {

int rsa_index() {
  static const int index = RSA_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

int ec_index() {
  static const int index = EC_KEY_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

int sign_rsa(int size, const unsigned char* from, unsigned char* to, RSA* rsa, int padding) {
  if (padding != RSA_PKCS1_PADDING && padding != RSA_NO_PADDING) return -1;
  auto* const signer = static_cast<Signer*>(RSA_get_ex_data(rsa, rsa_index()));
  std::size_t made = 0;
  const auto most = static_cast<std::size_t>(RSA_size(rsa));
  const bool done =
      signer->sign(padding == RSA_NO_PADDING ? Signer::Kind::rsa_padded : Signer::Kind::rsa_pkcs1,
                   std::as_bytes(std::span(from, static_cast<std::size_t>(size))), {to, most}, made);
  return done && made == most ? static_cast<int>(made) : -1;
}

int decrypt_nothing(int, const unsigned char*, unsigned char*, RSA*, int) { return -1; }

const RSA_METHOD* rsa_method() {
  static const RSA_METHOD* const method = [] {
    RSA_METHOD* const made = RSA_meth_dup(RSA_PKCS1_OpenSSL());
    RSA_meth_set1_name(made, "longhaul token");
    RSA_meth_set_flags(made, RSA_meth_get_flags(made) | RSA_FLAG_EXT_PKEY);
    RSA_meth_set_priv_enc(made, sign_rsa);
    RSA_meth_set_priv_dec(made, decrypt_nothing);
    return made;
  }();
  return method;
}

ECDSA_SIG* sign_ec(const unsigned char* digest, int size, const BIGNUM*, const BIGNUM*, EC_KEY* key) {
  auto* const signer = static_cast<Signer*>(EC_KEY_get_ex_data(key, ec_index()));
  const auto half = static_cast<std::size_t>((EC_GROUP_order_bits(EC_KEY_get0_group(key)) + 7) / 8);
  std::vector<unsigned char> out(2 * half);
  std::size_t made = 0;
  // Only the leftmost bits count (FIPS 186-4, section 6.4); not all tokens truncate the digest.
  const auto used = std::min(static_cast<std::size_t>(size), half);
  if (!signer->sign(Signer::Kind::ecdsa, std::as_bytes(std::span(digest, used)), out, made) ||
      made % 2 != 0 || made == 0)
    return nullptr;
  ECDSA_SIG* const signature = ECDSA_SIG_new();
  BIGNUM* const r = BN_bin2bn(out.data(), static_cast<int>(made / 2), nullptr);
  BIGNUM* const s = BN_bin2bn(out.data() + made / 2, static_cast<int>(made / 2), nullptr);
  if (signature && r && s && ECDSA_SIG_set0(signature, r, s) == 1) return signature;
  BN_free(r), BN_free(s), ECDSA_SIG_free(signature);
  return nullptr;
}

const EC_KEY_METHOD* ec_method() {
  static const EC_KEY_METHOD* const method = [] {
    EC_KEY_METHOD* const made = EC_KEY_METHOD_new(EC_KEY_OpenSSL());
    int (*sign)(int, const unsigned char*, int, unsigned char*, unsigned int*, const BIGNUM*, const BIGNUM*,
                EC_KEY*) = nullptr;
    int (*setup)(EC_KEY*, BN_CTX*, BIGNUM**, BIGNUM**) = nullptr;
    EC_KEY_METHOD_get_sign(made, &sign, &setup, nullptr);
    EC_KEY_METHOD_set_sign(made, sign, setup, sign_ec);
    return made;
  }();
  return method;
}

}  // namespace

// The method must be set before the EVP_PKEY gets the key, so that OpenSSL does not try to export the key.
EvpKey key_of(Signer& signer, const EVP_PKEY* public_key) {
  EvpKey made(EVP_PKEY_new());
  if (!made) return nullptr;
  if (EVP_PKEY_is_a(public_key, "RSA")) {
    RSA* const rsa = RSA_new();
    BIGNUM *n = nullptr, *e = nullptr;
    const bool is_made = rsa && EVP_PKEY_get_bn_param(public_key, "n", &n) == 1 &&
                         EVP_PKEY_get_bn_param(public_key, "e", &e) == 1 &&
                         RSA_set_method(rsa, rsa_method()) == 1 && RSA_set0_key(rsa, n, e, nullptr) == 1;
    if (!is_made) return BN_free(n), BN_free(e), RSA_free(rsa), nullptr;
    RSA_set_flags(rsa, RSA_FLAG_EXT_PKEY);
    RSA_set_ex_data(rsa, rsa_index(), &signer);
    if (EVP_PKEY_assign_RSA(made.get(), rsa) == 1) return made;
    RSA_free(rsa);
  } else if (EVP_PKEY_is_a(public_key, "EC")) {
    const EC_KEY* const known = EVP_PKEY_get0_EC_KEY(const_cast<EVP_PKEY*>(public_key));
    EC_KEY* const key = known ? EC_KEY_new() : nullptr;
    const bool is_made = key && EC_KEY_set_group(key, EC_KEY_get0_group(known)) == 1 &&
                         EC_KEY_set_method(key, ec_method()) == 1 &&
                         EC_KEY_set_public_key(key, EC_KEY_get0_public_key(known)) == 1;
    if (is_made) {
      EC_KEY_set_ex_data(key, ec_index(), &signer);
      if (EVP_PKEY_assign_EC_KEY(made.get(), key) == 1) return made;
    }
    EC_KEY_free(key);
  }
  return nullptr;
}

bool fits(EVP_PKEY* key, EVP_PKEY* public_key) {
  std::array<unsigned char, 32> text{};
  if (RAND_bytes(text.data(), static_cast<int>(text.size())) != 1) return false;
  const bool is_rsa = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
  // TLS 1.2 has both kinds of RSA signatures, TLS 1.3 only PSS.
  for (const int padding : is_rsa ? std::vector{RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING} : std::vector{0}) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> signing(EVP_MD_CTX_new(), EVP_MD_CTX_free),
        verifying(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EVP_PKEY_CTX *how = nullptr, *how_verified = nullptr;
    std::vector<unsigned char> signature(static_cast<std::size_t>(std::max(EVP_PKEY_get_size(key), 1)));
    std::size_t size = signature.size();
    const bool done =
        EVP_DigestSignInit(signing.get(), &how, EVP_sha256(), nullptr, key) == 1 &&
        (!is_rsa || EVP_PKEY_CTX_set_rsa_padding(how, padding) == 1) &&
        EVP_DigestSign(signing.get(), signature.data(), &size, text.data(), text.size()) == 1 &&
        EVP_DigestVerifyInit(verifying.get(), &how_verified, EVP_sha256(), nullptr, public_key) == 1 &&
        (!is_rsa || EVP_PKEY_CTX_set_rsa_padding(how_verified, padding) == 1) &&
        EVP_DigestVerify(verifying.get(), signature.data(), size, text.data(), text.size()) == 1;
    ERR_clear_error();
    if (!done) return false;
  }
  return true;
}

}  // namespace longhaul::identity
