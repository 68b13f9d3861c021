// SPDX-License-Identifier: Apache-2.0
// Certificates and keys in PEM files, and texts about them.
#pragma once
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "codecs/slice.h"

namespace longhaul::tls {

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, FreeCertificate>;
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

Certificate new_reference(X509* certificate);

// All certificates in the text, in order. Throws std::bad_alloc.
std::vector<Certificate> read_certificates(Bytes text);
// Returns null if there is no key without a passphrase. Throws std::bad_alloc.
Key read_key(Bytes text);

std::string date_of(const ASN1_TIME* time);  // "2026-11-25"

}  // namespace longhaul::tls
