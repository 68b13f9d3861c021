// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/tls_engine.h"

#include <openssl/err.h>

#include <cstring>
#include <stdexcept>

namespace longhaul::link {
namespace {

// AES-GCM keys are good for 2^24.5 full records (RFC 8446, section 5.5), some 380 GB; we change them much
// earlier.
constexpr std::uint64_t kBytesPerKey = 32ull << 30;

std::string openssl_error() {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "the connection ended during the handshake";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  const char* reason = ERR_reason_error_string(code);
  return reason ? reason : text;
}

}  // namespace

TlsContext::TlsContext(const identity::Identity& identity) : context_(SSL_CTX_new(TLS_method())) {
  SSL_CTX* context = context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  // 128 bits are enough and the fastest here; the others for peers without AES instructions.
  SSL_CTX_set_ciphersuites(context,
                           "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384");
  // Sessions of the link outlive connections by other means; tickets would only be a second way in.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Keys are pinned: chains, dates and names say nothing here. The handshake still proves that the peer has
  // the key.
  SSL_CTX_set_cert_verify_callback(
      context, [](X509_STORE_CTX*, void*) { return 1; }, nullptr);
  if (SSL_CTX_use_certificate(context, identity.certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, identity.private_key.get()) != 1)
    throw std::runtime_error("OpenSSL refuses the certificate or key: " + openssl_error());
}

int TlsEngine::bio_read(BIO* bio, char* out, std::size_t size, std::size_t* read) {
  auto* engine = static_cast<TlsEngine*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (engine->incoming_.empty()) {
    BIO_set_retry_read(bio);
    return 0;
  }
  *read = std::min(size, engine->incoming_.size());
  std::memcpy(out, engine->incoming_.data(), *read);
  engine->incoming_ = engine->incoming_.subspan(*read);
  return 1;
}

int TlsEngine::bio_write(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  auto* engine = static_cast<TlsEngine*>(BIO_get_data(bio));
  append(engine->outgoing_, std::as_bytes(std::span(data, size)));
  *written = size;
  return 1;
}

long TlsEngine::bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* TlsEngine::bio_method() {
  static BIO_METHOD* method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "longhaul link");
    BIO_meth_set_read_ex(made, &TlsEngine::bio_read);
    BIO_meth_set_write_ex(made, &TlsEngine::bio_write);
    BIO_meth_set_ctrl(made, &TlsEngine::bio_control);
    return made;
  }();
  return method;
}

TlsEngine::TlsEngine(const TlsContext& context, Side side) : ssl_(SSL_new(context.get())) {
  BIO* bio = BIO_new(bio_method());
  if (!ssl_ || !bio) throw std::bad_alloc();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);  // owns it
  if (side == Side::dialler) {
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

Result<void> TlsEngine::failure() {
  error_text_ = openssl_error();
  return boost::system::errc::make_error_code(boost::system::errc::protocol_error);
}

Result<void> TlsEngine::shake_hands() {
  ERR_clear_error();
  int done = SSL_do_handshake(ssl_.get());
  if (done != 1) return SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ ? Result<void>{} : failure();
  auto fingerprint = identity::fingerprint_of(SSL_get0_peer_certificate(ssl_.get()));
  if (!fingerprint) return fingerprint.error();
  peer_fingerprint_ = *fingerprint;
  established_ = true;
  return {};
}

Result<void> TlsEngine::receive(Bytes ciphertext, Buffer& plain) {
  incoming_ = ciphertext;
  ERR_clear_error();
  if (!established_) {
    if (auto shaken = shake_hands(); !shaken || !established_) return shaken;
  }
  constexpr std::size_t kRecord = 16 * 1024;
  for (;;) {
    std::size_t filled = plain.size(), read = 0;
    plain.resize(filled + kRecord);
    int done = SSL_read_ex(ssl_.get(), plain.data() + filled, kRecord, &read);
    plain.resize(filled + (done == 1 ? read : 0));
    if (done == 1) continue;
    switch (SSL_get_error(ssl_.get(), done)) {
      case SSL_ERROR_WANT_READ:
        return {};
      case SSL_ERROR_ZERO_RETURN:
        closed_by_peer_ = true;
        return {};
      default:
        return failure();
    }
  }
}

Result<void> TlsEngine::send(Bytes plain) {
  if (!established_) return shake_hands();
  sent_under_key_ += plain.size();
  if (sent_under_key_ >= kBytesPerKey) {
    sent_under_key_ = 0;
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
  }
  ERR_clear_error();
  while (!plain.empty()) {
    std::size_t written = 0;
    if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &written) != 1) return failure();
    plain = plain.subspan(written);
  }
  return {};
}

Result<Buffer> TlsEngine::export_keying_material(std::string_view label, Bytes context,
                                                 std::size_t size) const {
  Buffer exported(size);
  ERR_clear_error();
  if (!established_ ||
      SSL_export_keying_material(
          ssl_.get(), reinterpret_cast<unsigned char*>(exported.data()), size, label.data(), label.size(),
          reinterpret_cast<const unsigned char*>(context.data()), context.size(), 1) != 1) {
    ERR_clear_error();
    return boost::system::errc::make_error_code(boost::system::errc::protocol_error);
  }
  return exported;
}

void TlsEngine::close() {
  if (established_) SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

}  // namespace longhaul::link
