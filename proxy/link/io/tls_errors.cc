// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/tls_errors.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace longhaul::link {

Refusal refusal_of(unsigned long code) {
  switch (ERR_GET_REASON(code)) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_BAD_RECORD_TYPE:
      return Refusal::not_tls;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
    case SSL_R_NO_SUITABLE_GROUPS:
      return Refusal::unsupported;
    case SSL_R_EXCESSIVE_MESSAGE_SIZE:
      return Refusal::too_long;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return Refusal::no_certificate;
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return Refusal::rejected_by_peer;
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      return Refusal::unknown_key;
    default:
      return Refusal::failed;
  }
}

std::string openssl_text(unsigned long code) {
  if (code == 0) return "the connection ended during the handshake";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  const char* reason = ERR_reason_error_string(code);
  return reason ? reason : text;
}

std::string openssl_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  return openssl_text(code);
}

}  // namespace longhaul::link
