// SPDX-License-Identifier: Apache-2.0
// The key schedule of TLS 1.3 (RFC 8446, section 7.1), for a handshake without a pre-shared key: what libssl
// derives but does not give away in time.
#pragma once
#include "crypto/secret.h"
#include "crypto/tls_records.h"

namespace longhaul {

// HKDF-Expand-Label. `out` is at most 255 digests. Throws std::bad_alloc if OpenSSL has no memory.
void expand_label(const EVP_MD* digest, Bytes secret, const char* label, Bytes context, MutableBytes out);

struct ApplicationSecrets {
  SecretBytes client, server;  // *_application_traffic_secret_0
};
// `shared`: the result of the key exchange (section 7.4); `transcript`: the digest of the messages from
// ClientHello to the server's Finished. Throws like expand_label().
ApplicationSecrets application_secrets(const RecordSuite& suite, Bytes shared, Bytes transcript);

}  // namespace longhaul
