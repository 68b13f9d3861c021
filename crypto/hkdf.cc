// SPDX-License-Identifier: Apache-2.0
#include "crypto/hkdf.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>
#include <new>

namespace longhaul {
namespace {

struct FreeHkdf {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

// OpenSSL's parameters are pointers to non-const, although it only reads the data.
OSSL_PARAM bytes_param(const char* name, Bytes bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()), bytes.size());
}

void derive(int mode, Bytes salt, Bytes secret, Bytes info, MutableBytes out) {
  static const std::unique_ptr<EVP_KDF, FreeHkdf> kdf(EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr));
  std::unique_ptr<EVP_KDF_CTX, FreeHkdf> context(EVP_KDF_CTX_new(kdf.get()));
  char digest[] = "SHA256";
  OSSL_PARAM params[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      bytes_param(OSSL_KDF_PARAM_KEY, secret),
      bytes_param(OSSL_KDF_PARAM_INFO, info),
      salt.empty() ? OSSL_PARAM_construct_end() : bytes_param(OSSL_KDF_PARAM_SALT, salt),
      OSSL_PARAM_construct_end(),
  };
  if (!context ||
      EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(), params) != 1)
    throw std::bad_alloc();
}

}  // namespace

void hkdf(Bytes salt, Bytes secret, Bytes info, MutableBytes out) {
  derive(EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND, salt, secret, info, out);
}

void hkdf_expand(Bytes secret, Bytes info, MutableBytes out) {
  derive(EVP_KDF_HKDF_MODE_EXPAND_ONLY, {}, secret, info, out);
}

}  // namespace longhaul
