// SPDX-License-Identifier: Apache-2.0
// Reads a ClientHello during libssl's callback (SSL_CTX_set_client_hello_cb).
#pragma once
#include <openssl/ssl.h>

#include <optional>
#include <string>

#include "codecs/slice.h"

namespace longhaul::tls {

// Valid during the callback; empty if the extension is missing.
Bytes hello_extension(SSL* ssl, unsigned type);
// Its only host name in plain form (RFC 6066, section 3); empty if there is none, or if it is not a host
// name.
std::string hello_name(SSL* ssl);
// RFC 8446, section 4.2.1.
bool hello_offers_1_3(SSL* ssl);
// Whether it offers TLS 1.2 with a suite that this program supports for that key.
bool hello_offers_1_2(SSL* ssl, const EVP_PKEY* key);
// Protocols (RFC 7301), each after its length, in the format of SSL_set_alpn_protos(). Empty if there are
// none; nullopt if malformed.
std::optional<Bytes> hello_protocols(SSL* ssl);

}  // namespace longhaul::tls
