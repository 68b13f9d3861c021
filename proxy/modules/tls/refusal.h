// SPDX-License-Identifier: Apache-2.0
// Which errors of libssl mean that the client will not accept a handshake with the far half, now or later.
#pragma once
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace longhaul::tls {

// Sent by a client whose Encrypted Client Hello was not accepted (RFC 9849, section 11.2).
inline constexpr int kEchRequired = 121;

// An alert by which a client says that it does not want this certificate, or that it wants the server which decrypts its inner
// ClientHello; any other failure is not remembered.
inline bool refuses_us(unsigned long error) {
  switch (ERR_GET_REASON(error)) {
    case SSL_AD_REASON_OFFSET + kEchRequired:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return true;
    default:
      return false;
  }
}

}  // namespace longhaul::tls
