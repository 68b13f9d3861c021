// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/leg.h"

#include <openssl/err.h>

#include <array>
#include <new>

#include "proxy/modules/tls/ech.h"

namespace longhaul::tls {
namespace {

LegUser& user_of(const SSL* ssl) { return *static_cast<LegUser*>(SSL_get_app_data(ssl)); }

void log_secret(const SSL* ssl, const char* line) { user_of(ssl).on_secret(line); }

int choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* size, const unsigned char*, unsigned, void*) {
  const Bytes protocol = user_of(ssl).choose_protocol();
  if (protocol.empty() || protocol.size() > 255) return SSL_TLSEXT_ERR_NOACK;
  *chosen = reinterpret_cast<const unsigned char*>(protocol.data());
  *size = static_cast<unsigned char>(protocol.size());
  return SSL_TLSEXT_ERR_OK;
}

int give_certificate_status(SSL* ssl, void*) {
  const Bytes status = user_of(ssl).certificate_status(SSL_get_certificate(ssl));
  if (status.empty()) return SSL_TLSEXT_ERR_NOACK;
  void* const copy = OPENSSL_memdup(status.data(), status.size());
  if (!copy) return SSL_TLSEXT_ERR_ALERT_FATAL;
  SSL_set_tlsext_status_ocsp_resp(ssl, static_cast<unsigned char*>(copy), static_cast<long>(status.size()));
  return SSL_TLSEXT_ERR_OK;
}

int add_encrypted_hello(SSL* ssl, unsigned, unsigned, const unsigned char** out, std::size_t* size, X509*,
                        std::size_t, int*, void*) {
  const Bytes extension = user_of(ssl).encrypted_hello();
  *out = reinterpret_cast<const unsigned char*>(extension.data());
  *size = extension.size();
  return extension.empty() ? 0 : 1;
}

// A HelloRetryRequest has random bytes in its place.
int take_ech_configs(SSL* ssl, unsigned, unsigned message, const unsigned char* in, std::size_t size, X509*,
                     std::size_t, int*, void*) {
  if (message == SSL_EXT_TLS1_3_ENCRYPTED_EXTENSIONS)
    user_of(ssl).on_ech_configs(std::as_bytes(std::span(in, size)));
  return 1;
}

Context make(const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) throw std::bad_alloc();
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  return context;
}

}  // namespace

Context context_to_client() {
  Context context = make(TLS_server_method());
  // Tls12Suite::of
  if (SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) throw std::bad_alloc();
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_keylog_callback(context.get(), log_secret);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  SSL_CTX_set_tlsext_status_cb(context.get(), give_certificate_status);
  // So that hello_extension() finds it: libssl keeps no extension that is not registered.
  (void)SSL_CTX_add_custom_ext(context.get(), kEchExtension, SSL_EXT_CLIENT_HELLO, nullptr, nullptr, nullptr,
                               nullptr, nullptr);
  return context;
}

Context context_undecided() {
  Context context = context_to_client();
  SSL_CTX_set_client_hello_cb(
      context.get(), [](SSL* ssl, int*, void*) { return user_of(ssl).on_client_hello(ssl); }, nullptr);
  return context;
}

Authorities authorities_of_the_system() {
  Authorities authorities(X509_STORE_new());
  if (!authorities || X509_STORE_set_default_paths(authorities.get()) != 1) throw std::bad_alloc();
  return authorities;
}

Context context_to_server(X509_STORE* authorities) {
  Context context = make(TLS_client_method());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set1_cert_store(context.get(), authorities);
  SSL_CTX_set_keylog_callback(context.get(), log_secret);
  SSL_CTX_set_client_cert_cb(context.get(), [](SSL* ssl, X509**, EVP_PKEY**) {
    user_of(ssl).on_certificate_request();
    return 0;  // none is sent
  });
  // A release of OpenSSL with ECH of its own refuses this. Then nothing is known about servers with ECH.
  (void)SSL_CTX_add_custom_ext(
      context.get(), kEchExtension,
      SSL_EXT_CLIENT_HELLO | SSL_EXT_TLS1_3_HELLO_RETRY_REQUEST | SSL_EXT_TLS1_3_ENCRYPTED_EXTENSIONS,
      add_encrypted_hello, nullptr, nullptr, take_ech_configs, nullptr);
  return context;
}

// Session ids instead of tickets that only their issuer can read: the other half knows them, too.
void hand_out_sessions(SSL_CTX* context, std::size_t sessions) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_set_num_tickets(context, sessions);
  SSL_CTX_sess_set_new_cb(context, [](SSL* ssl, SSL_SESSION* session) {
    user_of(ssl).on_new_session(session);
    return 0;  // no reference is stored
  });
  SSL_CTX_sess_set_get_cb(context, [](SSL* ssl, const unsigned char* id, int size, int* copy) {
    *copy = 0;
    return user_of(ssl).find_session(std::as_bytes(std::span(id, static_cast<std::size_t>(size))));
  });
}

SessionBytes session_bytes(SSL_SESSION* session) {
  SessionBytes made;
  unsigned id_size = 0;
  const unsigned char* const id = SSL_SESSION_get_id(session, &id_size);
  made.id.assign(reinterpret_cast<const char*>(id), id_size);
  const int size = i2d_SSL_SESSION(session, nullptr);
  if (size <= 0) return made;
  made.bytes = SecretBytes(static_cast<std::size_t>(size));
  auto* at = reinterpret_cast<unsigned char*>(made.bytes.data());
  if (i2d_SSL_SESSION(session, &at) != size) made.bytes = {};
  return made;
}

std::optional<std::uint8_t> alert_of(unsigned long error) {
  const int description = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
  if (ERR_GET_LIB(error) != ERR_LIB_SSL || description <= SSL_AD_CLOSE_NOTIFY || description > 255)
    return std::nullopt;
  return static_cast<std::uint8_t>(description);
}

std::string last_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const text = ERR_reason_error_string(code);
  return text ? text : "no reason given";
}

Leg::Leg(SSL_CTX* context, LegUser& user)
    : ssl_(SSL_new(context)), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
  if (!ssl_ || !in_ || !out_) throw std::bad_alloc();
  BIO_set_mem_eof_return(in_, -1);  // empty: more data follows
  SSL_set_app_data(ssl_.get(), &user);
  SSL_set_bio(ssl_.get(), in_, out_);
  SSL_set_msg_callback_arg(ssl_.get(), this);
  SSL_set_msg_callback(
      ssl_.get(), [](int is_ours, int, int type, const void* data, std::size_t size, SSL*, void* leg) {
        if (type == SSL3_RT_HANDSHAKE)
          static_cast<Leg*>(leg)->note_message(is_ours, {static_cast<const std::byte*>(data), size});
      });
}

// A handshake ends with its tickets, where there are any.
void Leg::note_message(int is_ours, Bytes message) {
  if (is_ours != 0 && !message.empty() && message[0] == std::byte{SSL3_MT_NEWSESSION_TICKET})
    return user_of(ssl_.get()).on_ticket(message);
  if (keeps_transcript_) append(transcript_, message);
}

void Leg::feed(Bytes from_network) {
  if (!from_network.empty() &&
      BIO_write(in_, from_network.data(), static_cast<int>(from_network.size())) != static_cast<int>(from_network.size()))
    throw std::bad_alloc();
}

Slice Leg::drain() {
  const std::size_t size = BIO_ctrl_pending(out_);
  if (size == 0) return {};
  std::byte* memory = nullptr;
  Slice slice = Slice::unfilled(size, memory);
  BIO_read(out_, memory, static_cast<int>(size));
  return slice;
}

std::size_t Leg::unread() const { return BIO_ctrl_pending(in_); }

int Leg::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1) return SSL_get_error(ssl_.get(), result);
  keeps_transcript_ = false;
  transcript_ = {};
  SSL_set_msg_callback(
      ssl_.get(), [](int is_ours, int, int type, const void* data, std::size_t size, SSL* ssl, void* leg) {
        if (is_ours != 0) return user_of(ssl).on_sent(type, {static_cast<const std::byte*>(data), size});
        if (type == SSL3_RT_HANDSHAKE) static_cast<Leg*>(leg)->count_message();
      });
  return SSL_ERROR_NONE;
}

// One SSL_read_ex() reads all available messages: without further input it ends.
void Leg::count_message() {
  is_flooded_ |= ++messages_ > kMostMessages + read_bytes_ / kDataForOneMessage;
  if (is_flooded_) BIO_reset(in_);
}

Leg::Read Leg::read(Buffer& plain) {
  bool any = false;
  for (;;) {
    ERR_clear_error();
    constexpr std::size_t kPiece = 16 * 1024;
    const std::size_t before = plain.size();
    plain.resize(before + kPiece);
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_.get(), plain.data() + before, kPiece, &got);
    plain.resize(before + (result == 1 ? got : 0));
    if (result == 1) {
      any = true;
      read_bytes_ += got;
      continue;
    }
    if (is_flooded_) return Read::failed;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return any ? Read::bytes : Read::nothing;
      case SSL_ERROR_ZERO_RETURN:
        return Read::closed;
      default:
        if (!fatal_alert_) fatal_alert_ = alert_of(ERR_peek_error());
        return Read::failed;
    }
  }
}

bool Leg::write(Bytes plain) {
  ERR_clear_error();
  std::size_t written = 0;
  return plain.empty() || (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &written) == 1 && written == plain.size());
}

void Leg::close() {
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
}

}  // namespace longhaul::tls
