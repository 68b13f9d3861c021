// SPDX-License-Identifier: Apache-2.0
// The identity of a site: a certificate, its private key, and the fingerprint that peers pin. The link does
// the handshake.
#pragma once
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "codecs/result.h"
#include "proxy/config/config.h"
#include "proxy/identity/preshared_key.h"
#include "proxy/identity/server_secrets.h"

namespace longhaul::identity {

struct Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using CertificatePtr = std::unique_ptr<X509, Free>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free>;

struct Identity {
  CertificatePtr certificate;
  KeyPtr private_key;
  std::string fingerprint;
  PresharedKeys preshared;  // shared with peers, in addition to their keys
  ServerSecrets servers;    // for modules
  std::vector<std::string> warnings;  // sentences, such as an expired certificate
};

// "sha256:" and 64 hex digits: SHA-256 over the SubjectPublicKeyInfo, DER. The key is hashed and not the
// certificate, so that a new certificate for the same key keeps the fingerprint. Fails for a certificate
// without a key that can be encoded (bad_message).
Result<std::string> fingerprint_of(X509* certificate);

// Reads both files and checks that they belong together. A private key that other users can read or write
// is refused. Throws config::ConfigError, which names the file.
Identity load(const config::Identity& files);

// The same for a whole configuration with its preshared keys and the secrets of servers; no peer may have
// this site's own key.
Identity load(const config::Config& config);

}  // namespace longhaul::identity
