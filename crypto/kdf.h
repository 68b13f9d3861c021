// SPDX-License-Identifier: Apache-2.0
// OpenSSL's key derivation functions (EVP_KDF), for the functions of this folder.
#pragma once
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>
#include <new>
#include <span>

#include "codecs/bytes.h"

namespace longhaul {

struct FreeKdf {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};
using Kdf = std::unique_ptr<EVP_KDF, FreeKdf>;

// OpenSSL's parameters are pointers to non-const, although it only reads the data.
inline OSSL_PARAM bytes_param(const char* name, Bytes bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()), bytes.size());
}
inline OSSL_PARAM text_param(const char* name, const char* text) {
  return OSSL_PARAM_construct_utf8_string(name, const_cast<char*>(text), 0);
}

// `params` end with OSSL_PARAM_construct_end(). Throws std::bad_alloc if OpenSSL has no memory: its only
// reason to fail.
inline void derive(EVP_KDF* kdf, const OSSL_PARAM* params, MutableBytes out) {
  const std::unique_ptr<EVP_KDF_CTX, FreeKdf> context(EVP_KDF_CTX_new(kdf));
  if (!context ||
      EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(), params) != 1)
    throw std::bad_alloc();
}

}  // namespace longhaul
