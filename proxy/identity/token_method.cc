// SPDX-License-Identifier: Apache-2.0
// Uses the methods of RSA and EC_KEY, which OpenSSL 3.0 deprecates but still has: a provider would need
// several times as much code. A method of RSA gets data that OpenSSL has padded for RSA-PSS; the digest and
// the text are seen only by the method of the EVP_PKEY, which an engine replaces for a signer that pads or
// hashes itself.
#include "proxy/identity/token_method.h"

#include <openssl/ec.h>
#include <openssl/engine.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <array>
#include <utility>
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
      signer->sign(padding == RSA_NO_PADDING ? Signer::Kind::rsa_padded : Signer::Kind::rsa_pkcs1, NID_undef,
                   std::as_bytes(std::span(from, static_cast<std::size_t>(size))), {to, most}, made);
  return done && made == most ? static_cast<int>(made) : -1;
}

// ---- RSA padded, or also hashed, by the signer

using Sign = int (*)(EVP_PKEY_CTX*, unsigned char*, std::size_t*, const unsigned char*, std::size_t);
struct OpensslSigning {
  int (*init)(EVP_PKEY_CTX*) = nullptr;
  Sign sign = nullptr;
  OpensslSigning() { EVP_PKEY_meth_get_sign(EVP_PKEY_meth_find(EVP_PKEY_RSA), &init, &sign); }
};
const OpensslSigning& openssl_signing() {
  static const OpensslSigning signing;
  return signing;
}

// The hash of a signature; NID_undef if it is none that a Signer knows.
int hash_of(EVP_PKEY_CTX* how) {
  const EVP_MD* hash = nullptr;
  const int type = EVP_PKEY_CTX_get_signature_md(how, &hash) == 1 && hash ? EVP_MD_get_type(hash) : NID_undef;
  return type == NID_sha256 || type == NID_sha384 || type == NID_sha512 ? type : NID_undef;
}

int padding_of(EVP_PKEY_CTX* how) {
  int padding = 0;
  return EVP_PKEY_CTX_get_rsa_padding(how, &padding) == 1 ? padding : 0;
}

bool is_pss_of_tls(EVP_PKEY_CTX* how) {
  int salt = 0;
  const EVP_MD *hash = nullptr, *of_mask = nullptr;
  return padding_of(how) == RSA_PKCS1_PSS_PADDING && hash_of(how) != NID_undef &&
         EVP_PKEY_CTX_get_signature_md(how, &hash) == 1 && EVP_PKEY_CTX_get_rsa_mgf1_md(how, &of_mask) == 1 &&
         EVP_PKEY_CTX_get_rsa_pss_saltlen(how, &salt) == 1 && of_mask &&
         EVP_MD_get_type(of_mask) == EVP_MD_get_type(hash) &&
         (salt == RSA_PSS_SALTLEN_DIGEST || salt == EVP_MD_get_size(hash));
}

// `to` is as large as the modulus.
bool sign_by(EVP_PKEY_CTX* how, Signer::Kind kind, Bytes data, unsigned char* to, std::size_t& size) {
  const RSA* const rsa = EVP_PKEY_get0_RSA(EVP_PKEY_CTX_get0_pkey(how));
  auto* const signer = static_cast<Signer*>(RSA_get_ex_data(rsa, rsa_index()));
  const auto most = static_cast<std::size_t>(RSA_size(rsa));
  return signer->sign(kind, hash_of(how), data, {to, most}, size) && size == most;
}

// OpenSSL has checked the size of `to` (EVP_PKEY_FLAG_AUTOARGLEN).
int sign_digest(EVP_PKEY_CTX* how, unsigned char* to, std::size_t* size, const unsigned char* digest,
                std::size_t digest_size) {
  if (!is_pss_of_tls(how)) return openssl_signing().sign(how, to, size, digest, digest_size);
  return sign_by(how, Signer::Kind::rsa_pss, std::as_bytes(std::span(digest, digest_size)), to, *size);
}

// All signatures of libssl and of certificates are made by EVP_DigestSign(), which has the whole text.
int sign_text(EVP_MD_CTX* context, unsigned char* to, std::size_t* size, const unsigned char* text,
              std::size_t text_size) {
  EVP_PKEY_CTX* const how = EVP_MD_CTX_get_pkey_ctx(context);
  const auto most = static_cast<std::size_t>(EVP_PKEY_get_size(EVP_PKEY_CTX_get0_pkey(how)));
  const std::size_t room = std::exchange(*size, most);
  if (!to) return 1;
  const bool is_pss = is_pss_of_tls(how);
  if (room < most || hash_of(how) == NID_undef || (!is_pss && padding_of(how) != RSA_PKCS1_PADDING)) return 0;
  return sign_by(how, is_pss ? Signer::Kind::rsa_pss_text : Signer::Kind::rsa_pkcs1_text,
                 std::as_bytes(std::span(text, text_size)), to, *size);
}

template <RsaInput input>
int find_method(ENGINE*, EVP_PKEY_METHOD** method, const int** kinds, int kind) {
  static const int rsa = EVP_PKEY_RSA;
  static EVP_PKEY_METHOD* const only = [] {
    EVP_PKEY_METHOD* const made = EVP_PKEY_meth_new(EVP_PKEY_RSA, EVP_PKEY_FLAG_AUTOARGLEN);
    EVP_PKEY_meth_copy(made, EVP_PKEY_meth_find(EVP_PKEY_RSA));
    if constexpr (input == RsaInput::texts)
      EVP_PKEY_meth_set_digestsign(made, sign_text);
    else
      EVP_PKEY_meth_set_sign(made, openssl_signing().init, sign_digest);
    return made;
  }();
  if (!method) return *kinds = &rsa, 1;
  *method = kind == EVP_PKEY_RSA ? only : nullptr;
  return *method ? 1 : 0;
}

// Not in OpenSSL's list: only keys that refer to it use it.
template <RsaInput input>
ENGINE* engine_of() {
  static ENGINE* const engine = [] {
    ENGINE* const made = ENGINE_new();
    ENGINE_set_id(made, "longhaul"), ENGINE_set_name(made, "longhaul token");
    ENGINE_set_pkey_meths(made, find_method<input>);
    return made;
  }();
  return engine;
}

bool use_input(EVP_PKEY* key, RsaInput input) {
  if (input == RsaInput::padded) return true;
  ENGINE* const engine =
      input == RsaInput::texts ? engine_of<RsaInput::texts>() : engine_of<RsaInput::digests>();
  return EVP_PKEY_set1_engine(key, engine) == 1;
}

// ---- methods of RSA and EC_KEY

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
  if (!signer->sign(Signer::Kind::ecdsa, NID_undef, std::as_bytes(std::span(digest, used)), out, made) ||
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

// `padding`: of RSA.
bool signs(EVP_PKEY* key, EVP_PKEY* public_key, const EVP_MD* hash, int padding) {
  std::array<unsigned char, 32> text{};
  if (RAND_bytes(text.data(), static_cast<int>(text.size())) != 1) return false;
  const bool is_rsa = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> signing(EVP_MD_CTX_new(), EVP_MD_CTX_free),
      verifying(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_PKEY_CTX *how = nullptr, *how_verified = nullptr;
  std::vector<unsigned char> signature(static_cast<std::size_t>(std::max(EVP_PKEY_get_size(key), 1)));
  std::size_t size = signature.size();
  const auto pad = [&](EVP_PKEY_CTX* of) {
    return !is_rsa || (EVP_PKEY_CTX_set_rsa_padding(of, padding) == 1 &&
                       (padding != RSA_PKCS1_PSS_PADDING ||
                        EVP_PKEY_CTX_set_rsa_pss_saltlen(of, RSA_PSS_SALTLEN_DIGEST) == 1));
  };
  return EVP_DigestSignInit(signing.get(), &how, hash, nullptr, key) == 1 && pad(how) &&
         EVP_DigestSign(signing.get(), signature.data(), &size, text.data(), text.size()) == 1 &&
         EVP_DigestVerifyInit(verifying.get(), &how_verified, hash, nullptr, public_key) == 1 &&
         pad(how_verified) &&
         EVP_DigestVerify(verifying.get(), signature.data(), size, text.data(), text.size()) == 1;
}

}  // namespace

// The method must be set before the EVP_PKEY gets the key, so that OpenSSL does not try to export the key.
EvpKey key_of(Signer& signer, const EVP_PKEY* public_key, RsaInput input) {
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
    if (EVP_PKEY_assign_RSA(made.get(), rsa) != 1) return RSA_free(rsa), nullptr;
    if (use_input(made.get(), input)) return made;
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
  struct Way {
    const EVP_MD* hash;
    int padding;
  };
  std::vector<Way> ways;
  const bool is_rsa = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
  // TLS 1.2 has both kinds of RSA signatures, TLS 1.3 only PSS; the client chooses the hash.
  for (const int padding : {RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING})
    for (const EVP_MD* const hash : {EVP_sha256(), EVP_sha384(), EVP_sha512()})
      if (is_rsa || ways.empty()) ways.push_back({hash, padding});
  const bool all =
      std::ranges::all_of(ways, [&](Way way) { return signs(key, public_key, way.hash, way.padding); });
  ERR_clear_error();
  return all;
}

}  // namespace longhaul::identity
