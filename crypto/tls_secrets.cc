// SPDX-License-Identifier: Apache-2.0
#include "crypto/tls_secrets.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <cstring>
#include <memory>
#include <new>

namespace longhaul {
namespace {

struct FreeKdf {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

OSSL_PARAM bytes_param(const char* name, Bytes bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()), bytes.size());
}
OSSL_PARAM text_param(const char* name, const char* text) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(text), std::strlen(text));
}

// One step of the schedule. OpenSSL distinguishes a parameter that is missing from an empty one.
void derive(const EVP_MD* digest, int mode, const char* label, std::span<const OSSL_PARAM> inputs, MutableBytes out) {
  static const std::unique_ptr<EVP_KDF, FreeKdf> kdf(EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_TLS1_3_KDF, nullptr));
  const std::unique_ptr<EVP_KDF_CTX, FreeKdf> context(EVP_KDF_CTX_new(kdf.get()));
  std::vector<OSSL_PARAM> params{
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, const_cast<char*>(EVP_MD_get0_name(digest)), 0),
      text_param(OSSL_KDF_PARAM_PREFIX, "tls13 "),
      text_param(OSSL_KDF_PARAM_LABEL, label),
  };
  params.insert(params.end(), inputs.begin(), inputs.end());
  params.push_back(OSSL_PARAM_construct_end());
  if (!context || EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(), params.data()) != 1)
    throw std::bad_alloc();
}

// HKDF-Extract; the salt is derived from the secret before, if there is one.
using Stage = Secret<EVP_MAX_MD_SIZE>;
Stage extract(const EVP_MD* digest, std::span<const OSSL_PARAM> inputs) {
  Stage stage;
  const auto size = static_cast<std::size_t>(EVP_MD_get_size(digest));
  derive(digest, EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "derived", inputs, MutableBytes(stage.bytes).first(size));
  return stage;
}

}  // namespace

void expand_label(const EVP_MD* digest, Bytes secret, const char* label, Bytes context, MutableBytes out) {
  std::vector<OSSL_PARAM> inputs{bytes_param(OSSL_KDF_PARAM_KEY, secret)};
  if (!context.empty()) inputs.push_back(bytes_param(OSSL_KDF_PARAM_DATA, context));
  derive(digest, EVP_KDF_HKDF_MODE_EXPAND_ONLY, label, inputs, out);
}

ApplicationSecrets application_secrets(const RecordSuite& suite, Bytes shared, Bytes transcript) {
  const std::size_t size = suite.secret_bytes();
  const auto salt = [size](const Stage& before) {
    return bytes_param(OSSL_KDF_PARAM_SALT, Bytes(before.bytes).first(size));
  };
  const Stage early = extract(suite.digest, {});
  const Stage handshake = extract(suite.digest, std::array{salt(early), bytes_param(OSSL_KDF_PARAM_KEY, shared)});
  const Stage master = extract(suite.digest, std::array{salt(handshake)});
  ApplicationSecrets secrets{SecretBytes(size), SecretBytes(size)};
  const auto expand = [&](const char* label, SecretBytes& out) {
    expand_label(suite.digest, Bytes(master.bytes).first(size), label, transcript, {out.data(), size});
  };
  expand("c ap traffic", secrets.client);
  expand("s ap traffic", secrets.server);
  return secrets;
}

}  // namespace longhaul
