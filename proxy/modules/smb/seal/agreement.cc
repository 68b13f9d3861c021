// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/agreement.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string_view>

#include "crypto/kdf.h"

namespace longhaul::smb::seal {
namespace {

using namespace std::string_view_literals;

struct Free {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// NIST SP 800-108 in counter mode with HMAC-SHA256, as in 3.1.4.2. The labels include a terminating zero.
void derive_one(Bytes key, std::string_view label, Bytes context, MutableBytes out) {
  static const Kdf kdf(EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_KBKDF, nullptr));
  const OSSL_PARAM params[] = {
      text_param(OSSL_KDF_PARAM_MODE, "counter"),
      text_param(OSSL_KDF_PARAM_MAC, "HMAC"),
      text_param(OSSL_KDF_PARAM_DIGEST, "SHA256"),
      bytes_param(OSSL_KDF_PARAM_KEY, key),
      bytes_param(OSSL_KDF_PARAM_SALT, as_bytes(label)),
      bytes_param(OSSL_KDF_PARAM_INFO, context),
      OSSL_PARAM_construct_end(),
  };
  longhaul::derive(kdf.get(), params, out);
}

}  // namespace

SessionKeys derive(const Agreement& agreement, Bytes session_key, const PreauthValue& preauth) {
  Secret<16> key;
  std::copy_n(session_key.begin(), std::min(session_key.size(), key.bytes.size()), key.bytes.begin());
  SessionKeys keys;
  if (agreement.dialect < smb2::Dialect::smb_3_0) {
    keys.signing = key;
    return keys;
  }
  const bool newest = agreement.dialect == smb2::Dialect::smb_3_1_1;
  const auto context = [&](std::string_view older) { return newest ? Bytes(preauth) : as_bytes(older); };
  derive_one(key.bytes, newest ? "SMBSigningKey\0"sv : "SMB2AESCMAC\0"sv, context("SmbSign\0"sv),
             keys.signing.bytes);
  if (agreement.cipher == Cipher::none) return keys;
  // AES-256 takes the whole key of the login, the others its first 16 bytes.
  const std::size_t size = key_bytes(agreement.cipher);
  const Bytes from = size > key.bytes.size() ? session_key : Bytes(key.bytes);
  keys.to_server = SecretBytes(size);
  keys.to_client = SecretBytes(size);
  derive_one(from, newest ? "SMBC2SCipherKey\0"sv : "SMB2AESCCM\0"sv, context("ServerIn \0"sv),
             {keys.to_server.data(), size});
  derive_one(from, newest ? "SMBS2CCipherKey\0"sv : "SMB2AESCCM\0"sv, context("ServerOut\0"sv),
             {keys.to_client.data(), size});
  return keys;
}

void extend(PreauthValue& value, Bytes message) {
  const std::unique_ptr<EVP_MD_CTX, Free> hash(EVP_MD_CTX_new());
  if (!hash || EVP_DigestInit_ex(hash.get(), EVP_sha512(), nullptr) != 1 ||
      EVP_DigestUpdate(hash.get(), value.data(), value.size()) != 1 ||
      EVP_DigestUpdate(hash.get(), message.data(), message.size()) != 1 ||
      EVP_DigestFinal_ex(hash.get(), reinterpret_cast<unsigned char*>(value.data()), nullptr) != 1)
    throw std::bad_alloc();
}

}  // namespace longhaul::smb::seal
