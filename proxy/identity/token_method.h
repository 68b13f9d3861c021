// SPDX-License-Identifier: Apache-2.0
// RSA and EC private keys for OpenSSL that delegate each signature to a `Signer`.
#pragma once
#include <openssl/evp.h>

#include <memory>
#include <span>

#include "codecs/slice.h"

namespace longhaul::identity {

struct FreeEvpKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using EvpKey = std::unique_ptr<EVP_PKEY, FreeEvpKey>;

class Signer {
 public:
  virtual ~Signer() = default;
  enum class Kind : std::uint8_t {
    rsa_pkcs1,   // data: a DigestInfo (RFC 8017, section 9.2)
    rsa_padded,  // data: as large as the modulus
    rsa_pss,  // data: a digest, to be padded as in TLS (RFC 8446, section 4.2.3): MGF1 with the same hash, a
              // salt as long as the digest
    rsa_pkcs1_text,  // data: a text, to be hashed and padded as for rsa_pkcs1
    rsa_pss_text,    // the same as for rsa_pss
    ecdsa,           // data: a digest; out: r and s, each as large as the curve's order
  };
  // Whether the first `size` bytes of `out` are a signature. `hash`: NID_sha256, -384 or -512 for rsa_pss and
  // for texts, otherwise NID_undef.
  virtual bool sign(Kind kind, int hash, Bytes data, std::span<unsigned char> out, std::size_t& size) = 0;
};

// What the signer gets of an RSA key.
enum class RsaInput : std::uint8_t {
  digests,  // rsa_pkcs1 and rsa_pss
  padded,   // rsa_pkcs1 and rsa_padded
  texts,    // rsa_pkcs1_text and rsa_pss_text
};

// The private key for `public_key`; null if that is neither RSA nor EC. The signer outlives every use of the
// key.
EvpKey key_of(Signer& signer, const EVP_PKEY* public_key, RsaInput input);
// Whether the signer has the private key for `public_key`: signs as TLS does, and verifies the signature.
bool fits(EVP_PKEY* key, EVP_PKEY* public_key);

}  // namespace longhaul::identity
