// SPDX-License-Identifier: Apache-2.0
#include "crypto/hkdf.h"

#include "crypto/kdf.h"

namespace longhaul {
namespace {

void hkdf_sha256(int mode, Bytes salt, Bytes secret, Bytes info, MutableBytes out) {
  static const Kdf kdf(EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr));
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      text_param(OSSL_KDF_PARAM_DIGEST, "SHA256"),
      bytes_param(OSSL_KDF_PARAM_KEY, secret),
      bytes_param(OSSL_KDF_PARAM_INFO, info),
      salt.empty() ? OSSL_PARAM_construct_end() : bytes_param(OSSL_KDF_PARAM_SALT, salt),
      OSSL_PARAM_construct_end(),
  };
  derive(kdf.get(), params, out);
}

}  // namespace

void hkdf(Bytes salt, Bytes secret, Bytes info, MutableBytes out) {
  hkdf_sha256(EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND, salt, secret, info, out);
}

void hkdf_expand(Bytes secret, Bytes info, MutableBytes out) {
  hkdf_sha256(EVP_KDF_HKDF_MODE_EXPAND_ONLY, {}, secret, info, out);
}

}  // namespace longhaul
