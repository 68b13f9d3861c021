// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/tls_context.h"

#include <openssl/err.h>

#include <stdexcept>

#include "proxy/identity/certificate.h"
#include "proxy/link/io/tls_engine.h"
#include "proxy/link/io/tls_errors.h"

namespace longhaul::link {
namespace {

// Only the groups that peers need: each further group is work that a stranger can cause with one ClientHello.
// The key exchange resists quantum computers if the library has ML-KEM (OpenSSL 3.5). Then both shares are
// sent, so that an older peer needs no second round trip.
bool set_key_exchange(SSL_CTX* context) {
  const bool set = SSL_CTX_set1_groups_list(context, "*X25519MLKEM768:*X25519:P-256") == 1 ||
                   SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1;
  ERR_clear_error();
  return set && SSL_CTX_set1_sigalgs_list(context, "ecdsa_secp256r1_sha256:ed25519") == 1;
}

}  // namespace

TlsContext::TlsContext(const identity::Identity& identity, std::shared_ptr<KeyLog> key_log)
    : context_(SSL_CTX_new(TLS_method())), fingerprint_(identity.fingerprint), key_log_(std::move(key_log)) {
  SSL_CTX* context = context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  // 128 bits are enough and fastest here; the others are for peers without AES instructions.
  SSL_CTX_set_ciphersuites(context,
                           "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384");
  if (!set_key_exchange(context))
    throw std::runtime_error("OpenSSL supports neither X25519 nor P-256: " + openssl_error());
  SSL_CTX_set_max_cert_list(context, TlsEngine::kMostCertificateBytes);
  // The link's sessions survive connections by other means; tickets would only add a second way to
  // authenticate.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  TlsEngine::set_callbacks(context);
  // The certificate reveals only the key to a stranger, which TLS cannot hide.
  const auto certificate = identity::nameless_certificate(identity.private_key.get());
  if (SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, identity.private_key.get()) != 1)
    throw std::runtime_error("OpenSSL rejects the certificate or key: " + openssl_error());
}

}  // namespace longhaul::link
