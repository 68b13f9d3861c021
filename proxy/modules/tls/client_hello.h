// SPDX-License-Identifier: Apache-2.0
// What a ClientHello says, while libssl asks about it (SSL_CTX_set_client_hello_cb).
#pragma once
#include <openssl/ssl.h>

#include <string>

#include "codecs/slice.h"

namespace longhaul::tls {

// Valid during the callback; empty: it is not there.
Bytes hello_extension(SSL* ssl, unsigned type);
// Its one host name in plain form (RFC 6066, section 3); empty: none, or not a host name.
std::string hello_name(SSL* ssl);
// RFC 8446, section 4.2.1.
bool hello_offers_1_3(SSL* ssl);
// TLS 1.2 with a suite that this program has, for that key.
bool hello_offers_1_2(SSL* ssl, const EVP_PKEY* key);
// Protocols (RFC 7301), each behind its length, as SSL_set_alpn_protos() takes them.
Bytes hello_protocols(SSL* ssl);

}  // namespace longhaul::tls
