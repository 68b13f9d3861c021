// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/upstream.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <new>

namespace longhaul::tls {

Upstream::Upstream(SSL_CTX* context, const std::string& name, Bytes protocols, bool asks_status) : leg_(context, *this) {
  SSL* const ssl = leg_.ssl();
  SSL_set_connect_state(ssl);
  const auto* const offered = reinterpret_cast<const unsigned char*>(protocols.data());
  if (SSL_set_tlsext_host_name(ssl, name.c_str()) != 1 || SSL_set1_host(ssl, name.c_str()) != 1 ||
      (!protocols.empty() && SSL_set_alpn_protos(ssl, offered, static_cast<unsigned>(protocols.size())) != 0))
    throw std::bad_alloc();
  if (asks_status) SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp);
}

void Upstream::verify_alternative_names() {
  SSL_set_hostflags(leg_.ssl(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
}

Upstream::Next Upstream::shake_hands() {
  const int result = leg_.shake_hands();
  if (wants_certificate_) {
    ERR_clear_error();
    why_ = "it asks for a client certificate";
    return Next::wants_certificate;
  }
  if (result == SSL_ERROR_NONE) return Next::done;
  if (result == SSL_ERROR_WANT_READ) return Next::more;
  const bool is_by_client = ERR_GET_REASON(ERR_peek_error()) == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL;
  why_ = last_error();
  if (const long verified = SSL_get_verify_result(leg_.ssl()); verified != X509_V_OK)
    (why_ += ": ") += X509_verify_cert_error_string(verified);
  return is_by_client ? Next::no_protocol : Next::refused;
}

// What libssl would send after the alert would have the number of the alert.
Slice Upstream::drain() {
  Slice bytes = leg_.drain();
  return has_alerted_ ? Slice() : bytes;
}

Slice Upstream::last_alert(std::uint8_t description, LastAlert::When when) {
  if (when == LastAlert::When::shaking) leg_.drain();
  has_alerted_ = true;
  return Slice::copy_of(alert_.seal(leg_.ssl(), description, when));
}

Bytes Upstream::protocol() const {
  const unsigned char* data = nullptr;
  unsigned length = 0;
  SSL_get0_alpn_selected(leg_.ssl(), &data, &length);
  return std::as_bytes(std::span(data, length));
}

Bytes Upstream::status_of(const X509* certificate) const {
  const X509* const at_server = SSL_get0_peer_certificate(leg_.ssl());
  if (!certificate || !at_server || X509_cmp(certificate, at_server) != 0) return {};
  const unsigned char* status = nullptr;
  const long size = SSL_get_tlsext_status_ocsp_resp(leg_.ssl(), &status);
  return size > 0 ? std::as_bytes(std::span(status, static_cast<std::size_t>(size))) : Bytes{};
}

}  // namespace longhaul::tls
