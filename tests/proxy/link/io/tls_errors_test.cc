// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/tls_errors.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <catch2/catch.hpp>

using longhaul::link::openssl_error;
using longhaul::link::openssl_text;
using longhaul::link::Refusal;
using longhaul::link::refusal_of;

namespace {

Refusal refusal_for(int reason) { return refusal_of(ERR_PACK(ERR_LIB_SSL, 0, reason)); }

}  // namespace

TEST_CASE("errors of a handshake are one of few cases") {
  CHECK((refusal_for(SSL_R_HTTP_REQUEST) == Refusal::not_tls));
  CHECK((refusal_for(SSL_R_UNSUPPORTED_PROTOCOL) == Refusal::unsupported));
  CHECK((refusal_for(SSL_R_NO_SHARED_CIPHER) == Refusal::unsupported));
  CHECK((refusal_for(SSL_R_EXCESSIVE_MESSAGE_SIZE) == Refusal::too_long));
  CHECK((refusal_for(SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) == Refusal::no_certificate));
  CHECK((refusal_for(SSL_R_CERTIFICATE_VERIFY_FAILED) == Refusal::unknown_key));
  CHECK((refusal_for(SSL_R_SSLV3_ALERT_BAD_CERTIFICATE) == Refusal::rejected_by_peer));
  CHECK((refusal_for(SSL_R_DIGEST_CHECK_FAILED) == Refusal::failed));
  CHECK((refusal_of(0) == Refusal::failed));
}

TEST_CASE("an error is text without OpenSSL's numbers, and is reported once") {
  ERR_clear_error();
  CHECK(openssl_text(0) == "the connection ended during the handshake");
  ERR_raise(ERR_LIB_SSL, SSL_R_NO_SHARED_CIPHER);
  ERR_raise(ERR_LIB_SSL, SSL_R_HTTP_REQUEST);
  CHECK(openssl_error() == "no shared cipher");
  CHECK(ERR_peek_error() == 0);
}
