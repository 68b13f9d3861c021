// SPDX-License-Identifier: Apache-2.0
#include "crypto/tls_secrets.h"

#include <array>
#include <string_view>
#include <vector>

#include "crypto/kdf.h"

namespace longhaul {
namespace {

// One step of the schedule. A parameter that is missing means something else than an empty one.
void step(const EVP_MD* digest, int mode, std::string_view label, std::span<const OSSL_PARAM> inputs,
          MutableBytes out) {
  static const Kdf kdf(EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_TLS1_3_KDF, nullptr));
  std::vector<OSSL_PARAM> params{
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      text_param(OSSL_KDF_PARAM_DIGEST, EVP_MD_get0_name(digest)),
      bytes_param(OSSL_KDF_PARAM_PREFIX, as_bytes("tls13 ")),
      bytes_param(OSSL_KDF_PARAM_LABEL, as_bytes(label)),
  };
  params.insert(params.end(), inputs.begin(), inputs.end());
  params.push_back(OSSL_PARAM_construct_end());
  derive(kdf.get(), params.data(), out);
}

// HKDF-Extract; the salt is derived from the secret before, if there is one.
using Stage = Secret<EVP_MAX_MD_SIZE>;
Stage extract(const EVP_MD* digest, std::span<const OSSL_PARAM> inputs) {
  Stage stage;
  const auto size = static_cast<std::size_t>(EVP_MD_get_size(digest));
  step(digest, EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "derived", inputs, MutableBytes(stage.bytes).first(size));
  return stage;
}

}  // namespace

void expand_label(const EVP_MD* digest, Bytes secret, const char* label, Bytes context, MutableBytes out) {
  std::vector<OSSL_PARAM> inputs{bytes_param(OSSL_KDF_PARAM_KEY, secret)};
  if (!context.empty()) inputs.push_back(bytes_param(OSSL_KDF_PARAM_DATA, context));
  step(digest, EVP_KDF_HKDF_MODE_EXPAND_ONLY, label, inputs, out);
}

ApplicationSecrets application_secrets(const RecordSuite& suite, Bytes shared, Bytes transcript) {
  const std::size_t size = suite.secret_bytes();
  const auto salt = [size](const Stage& before) {
    return bytes_param(OSSL_KDF_PARAM_SALT, Bytes(before.bytes).first(size));
  };
  const Stage early = extract(suite.digest, {});
  const Stage handshake =
      extract(suite.digest, std::array{salt(early), bytes_param(OSSL_KDF_PARAM_KEY, shared)});
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
