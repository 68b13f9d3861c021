// SPDX-License-Identifier: Apache-2.0
// Which libssl errors mean that the client will not accept a handshake with the far half, now or later.
#pragma once
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string>

#include "proxy/modules/tls/reasons.h"
#include "proxy/modules/tls/remembered.h"

namespace longhaul::tls {

// Sent by a client whose Encrypted Client Hello was not accepted (RFC 9849, section 11.2).
inline constexpr int kEchRequired = 121;

// Whether the client sent an alert because it does not accept this certificate, or because it needs the
// server that decrypts its inner ClientHello; other failures are not remembered.
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

// After a failure with that error: if it is such an alert, the client's next connections pass.
inline void note_client_refusal(Remembered& remembered, const modules::Ends& ends, const std::string& name,
                                modules::TimePoint now, unsigned long error) {
  if (refuses_us(error))
    remembered.note(Remembered::of_client(ends, name), reasons::tls_client_refused,
                    now + std::chrono::hours(24));
}

}  // namespace longhaul::tls
