// SPDX-License-Identifier: Apache-2.0
// Self-signed certificates: the form in which TLS carries a public key. Files are in keygen.h and identity.h.
#pragma once
#include <string>

#include "proxy/identity/identity.h"

namespace longhaul::identity {

// A certificate with the site's name and a validity of 20 years, for the certificate file. Throws
// std::runtime_error if OpenSSL fails.
CertificatePtr named_certificate(EVP_PKEY* key, const std::string& name);
// A certificate for the handshake, where strangers can see it: without a name, with fixed serial number and
// dates, so that it reveals only the key. Throws std::runtime_error if OpenSSL fails.
CertificatePtr nameless_certificate(EVP_PKEY* key);

}  // namespace longhaul::identity
