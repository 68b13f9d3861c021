// SPDX-License-Identifier: Apache-2.0
// Self-signed certificates: the form in which TLS wants a public key. Leaves files to keygen.h and
// identity.h.
#pragma once
#include <string>

#include "proxy/identity/identity.h"

namespace longhaul::identity {

// With the site's name and 20 years to live, for the file that a person looks at. Throws std::runtime_error
// when OpenSSL fails.
CertificatePtr named_certificate(EVP_PKEY* key, const std::string& name);
// For the handshake, where every stranger gets it: no name, a fixed serial number and fixed dates, so that it
// tells nothing but the key. Throws std::runtime_error when OpenSSL fails.
CertificatePtr nameless_certificate(EVP_PKEY* key);

}  // namespace longhaul::identity
