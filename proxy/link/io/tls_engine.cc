// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/tls_engine.h"

#include <openssl/err.h>

#include <cstring>

#include "crypto/hkdf.h"
#include "proxy/identity/certificate.h"
#include "proxy/link/io/tls_errors.h"

namespace longhaul::link {
namespace {

// AES-GCM keys are safe for 2^24.5 full records (RFC 8446, section 5.5), about 380 GB; they are changed much
// earlier.
constexpr std::uint64_t kBytesPerKey = 32ull << 30;

// RFC 8446, sections 4 and 6.
constexpr std::uint8_t kKeyUpdate = 24;
constexpr std::uint8_t kCloseNotify = 0, kUnexpectedMessage = 10, kBadRecordMac = 20, kBadCertificate = 42,
                       kUserCanceled = 90;

}  // namespace

void TlsEngine::set_callbacks(SSL_CTX* context) {
  // The only public way to obtain a connection's traffic secrets. They are used only for the engine's record
  // keys, and written to the key log if there is one.
  SSL_CTX_set_keylog_callback(context, &TlsEngine::take_secret);
  // Keys are pinned: chains, dates and names are ignored here. The handshake still proves that the peer has
  // the key.
  SSL_CTX_set_cert_verify_callback(context, &TlsEngine::check_key, nullptr);
}

int TlsEngine::bio_read(BIO* bio, char* out, std::size_t size, std::size_t* read) {
  auto* engine = static_cast<TlsEngine*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (engine->incoming_.empty()) {
    BIO_set_retry_read(bio);
    return 0;
  }
  *read = std::min(size, engine->incoming_.size());
  engine->handshake_bytes_ += *read;
  if (engine->handshake_bytes_ > kMostHandshakeBytes) return 0;  // an error, because no retry is requested
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

TlsEngine::TlsEngine(const TlsContext& context, Side side, FindKey find)
    : ssl_(SSL_new(context.get())),
      side_(side),
      find_(std::move(find)),
      key_log_(context.key_log()),
      own_fingerprint_(context.fingerprint()) {
  BIO* bio = BIO_new(bio_method());
  if (!ssl_ || !bio) throw std::bad_alloc();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);  // takes ownership
  SSL_set_app_data(ssl_.get(), this);
  if (side == Side::dialler) {
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

// Called while the Certificate is read, before the CertificateVerify that follows it: nothing is computed
// with an unknown key, and a dialler has not yet sent its own certificate.
int TlsEngine::check_key(X509_STORE_CTX* shown, void*) {
  const auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(shown, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* engine = static_cast<TlsEngine*>(SSL_get_app_data(ssl));
  auto fingerprint = identity::fingerprint_of(X509_STORE_CTX_get0_cert(shown));
  if (engine && fingerprint) {
    engine->peer_fingerprint_ = *fingerprint;
    if (auto known = engine->find_(*fingerprint)) return engine->peer_key_ = std::move(*known), 1;
  }
  X509_STORE_CTX_set_error(shown, X509_V_ERR_CERT_REJECTED);  // bad_certificate, in the alert
  return 0;
}

Result<void> TlsEngine::failure() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  error_text_ = openssl_text(code);
  refusal_ = handshake_bytes_ > kMostHandshakeBytes ? Refusal::too_long : refusal_of(code);
  return boost::system::errc::make_error_code(boost::system::errc::protocol_error);
}

Result<void> TlsEngine::shake_hands() {
  ERR_clear_error();
  int done = SSL_do_handshake(ssl_.get());
  if (done != 1) return SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ ? Result<void>{} : failure();
  if (peer_fingerprint_.empty()) return failure();
  return take_over();
}

// A line of the NSS key log: label, client random, secret, the latter two in hex.
void TlsEngine::take_secret(const SSL* ssl, const char* line) {
  auto* engine = static_cast<TlsEngine*>(SSL_get_app_data(ssl));
  if (!engine) return;
  std::string_view text(line);
  if (text.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) engine->dialler_secret_ = key_log_secret(text);
  if (text.starts_with("SERVER_TRAFFIC_SECRET_0 ")) engine->acceptor_secret_ = key_log_secret(text);
  if (engine->key_log_ && text.find("_HANDSHAKE_TRAFFIC_SECRET ") != text.npos) (engine->key_log_lines_ += text) += '\n';
}

// Logs the secrets of the records, which include the preshared key.
void TlsEngine::log_keys() {
  if (!key_log_) return;
  std::array<unsigned char, SSL3_RANDOM_SIZE> random;
  SSL_get_client_random(ssl_.get(), random.data(), random.size());
  for (const auto& [label, secret] : {std::pair("CLIENT_TRAFFIC_SECRET_0 ", &dialler_secret_),
                                      std::pair("SERVER_TRAFFIC_SECRET_0 ", &acceptor_secret_)}) {
    key_log_lines_ += label;
    append_hex(key_log_lines_, std::as_bytes(std::span(random)));
    key_log_lines_ += ' ';
    append_hex(key_log_lines_, {secret->data(), secret->size()});
    key_log_lines_ += '\n';
  }
  key_log_->write(key_log_lines_);
  key_log_lines_.clear();
}

// Mixes the preshared key into the secret. An attacker that later obtains the agreed secret, for instance
// with a quantum computer, still needs the preshared key.
void TlsEngine::mix_in_preshared(std::string_view label, SecretBytes& secret) const {
  if (!peer_key_.preshared) return;
  SecretBytes mixed(secret.size());
  hkdf(peer_key_.preshared->bytes, secret, std::as_bytes(std::span(label)), {mixed.data(), mixed.size()});
  secret = std::move(mixed);
}

// libssl has not encrypted or decrypted a record with these keys: it sends no tickets, and reads only the
// record that it needs.
Result<void> TlsEngine::take_over() {
  const SSL_CIPHER* cipher = SSL_get_current_cipher(ssl_.get());
  const auto suite = cipher ? RecordSuite::of(SSL_CIPHER_get_protocol_id(cipher)) : std::nullopt;
  bool dials = side_ == Side::dialler;
  if (SSL_has_pending(ssl_.get()) || !suite || dialler_secret_.empty() || acceptor_secret_.empty())
    return failure();
  mix_in_preshared("longhaul preshared dialler", dialler_secret_);
  mix_in_preshared("longhaul preshared acceptor", acceptor_secret_);
  log_keys();
  sealer_.emplace(*suite, dials ? dialler_secret_ : acceptor_secret_);
  opener_.emplace(*suite, dials ? acceptor_secret_ : dialler_secret_);
  dialler_secret_ = {};
  acceptor_secret_ = {};
  established_ = true;
  return {};
}

Result<void> TlsEngine::receive(Bytes ciphertext, Buffer& plain) {
  if (!established_) {
    incoming_ = ciphertext;
    if (auto shaken = shake_hands(); !shaken || !established_) return shaken;
    ciphertext = std::exchange(incoming_, {});
  }
  while (!ciphertext.empty() && !closed_by_peer_) {
    // Records are decrypted in place; only a record that is split between two pieces is copied.
    Bytes known = partial_.empty() ? ciphertext : Bytes(partial_);
    std::size_t size = kRecordHeadBytes;
    if (known.size() >= kRecordHeadBytes) {
      auto whole = RecordOpener::record_size(known);
      if (!whole) return refuse(kUnexpectedMessage);
      size = *whole;
    }
    if (partial_.empty() && ciphertext.size() >= size && size > kRecordHeadBytes) {
      if (auto taken = receive_record(ciphertext.first(size), plain); !taken) return taken;
      ciphertext = ciphertext.subspan(size);
      continue;
    }
    Bytes piece = ciphertext.first(std::min(size - partial_.size(), ciphertext.size()));
    append(partial_, piece);
    ciphertext = ciphertext.subspan(piece.size());
    if (size == kRecordHeadBytes || partial_.size() < size) continue;
    if (auto taken = receive_record(partial_, plain); !taken) return taken;
    partial_.clear();
  }
  return {};
}

Result<void> TlsEngine::receive_record(Bytes record, Buffer& plain) {
  std::size_t before = plain.size();
  auto type = opener_->open(record, plain);
  if (!type) {
    auto refused = refuse(kBadRecordMac);
    // Both have proved their keys by now, so only the preshared key can differ.
    if (!heard_)
      error_text_ =
          "the first record cannot be decrypted: preshared_key_file of the [[peer]] must hold the same "
          "secret "
          "at both sites, or be configured at neither";
    return refused;
  }
  heard_ = true;
  if (*type == ContentType::application_data) return {};
  Buffer message(plain.begin() + static_cast<std::ptrdiff_t>(before), plain.end());
  plain.resize(before);
  if (*type == ContentType::alert) return on_alert(message);
  if (*type == ContentType::handshake) return on_handshake_message(message);
  return refuse(kUnexpectedMessage);
}

Result<void> TlsEngine::on_alert(Bytes alert) {
  if (alert.size() != 2) return refuse(kUnexpectedMessage);
  auto description = std::to_integer<std::uint8_t>(alert[1]);
  if (description == kUserCanceled) return {};
  closed_by_peer_ = description == kCloseNotify;
  if (closed_by_peer_) return {};
  if (description == kBadCertificate) refusal_ = Refusal::rejected_by_peer;
  error_text_ = std::string("TLS alert from the peer: ") + SSL_alert_desc_string_long(description);
  return boost::system::errc::make_error_code(boost::system::errc::protocol_error);
}

// Only KeyUpdate is allowed: there are no tickets and no post-handshake authentication.
Result<void> TlsEngine::on_handshake_message(Bytes message) {
  constexpr std::array kHead{std::byte{kKeyUpdate}, std::byte{0}, std::byte{0}, std::byte{1}};
  if (message.size() != kHead.size() + 1 || !std::equal(kHead.begin(), kHead.end(), message.begin()) ||
      message.back() > std::byte{1})
    return refuse(kUnexpectedMessage);
  opener_->update();
  answer_key_update_ = answer_key_update_ || message.back() == std::byte{1};
  return {};
}

// RFC 8446, section 4.6.3: the message is the last one under the old key.
Result<void> TlsEngine::renew_key() {
  constexpr std::array kNotRequested{std::byte{kKeyUpdate}, std::byte{0}, std::byte{0}, std::byte{1},
                                     std::byte{0}};
  answer_key_update_ = false;
  sent_under_key_ = 0;
  const Bytes message(kNotRequested);
  if (!sealer_->seal(ContentType::handshake, std::span(&message, 1), outgoing_)) return failure();
  sealer_->update();
  return {};
}

Result<void> TlsEngine::send_pieces(std::span<const Bytes> pieces) {
  if (!established_) return shake_hands();
  if (sent_under_key_ >= kBytesPerKey || answer_key_update_)
    if (auto changed = renew_key(); !changed) return changed;
  for (Bytes piece : pieces) sent_under_key_ += piece.size();
  if (!sealer_->seal(ContentType::application_data, pieces, outgoing_)) return failure();
  return {};
}

Result<void> TlsEngine::refuse(std::uint8_t alert) {
  const std::array fatal{std::byte{2}, std::byte{alert}};
  const Bytes message(fatal);
  sealer_->seal(ContentType::alert, std::span(&message, 1), outgoing_);
  error_text_ = std::string("invalid TLS record received: ") + SSL_alert_desc_string_long(alert);
  return boost::system::errc::make_error_code(boost::system::errc::protocol_error);
}

Result<SecretBytes> TlsEngine::export_keying_material(std::string_view label, Bytes context,
                                                      std::size_t size) const {
  SecretBytes exported(size);
  ERR_clear_error();
  if (!established_ ||
      SSL_export_keying_material(
          ssl_.get(), reinterpret_cast<unsigned char*>(exported.data()), size, label.data(), label.size(),
          reinterpret_cast<const unsigned char*>(context.data()), context.size(), 1) != 1) {
    ERR_clear_error();
    return boost::system::errc::make_error_code(boost::system::errc::protocol_error);
  }
  mix_in_preshared("longhaul preshared export", exported);
  return exported;
}

void TlsEngine::close() {
  if (!established_) return;
  const std::array warning{std::byte{1}, std::byte{kCloseNotify}};
  const Bytes message(warning);
  sealer_->seal(ContentType::alert, std::span(&message, 1), outgoing_);
  ERR_clear_error();
}

}  // namespace longhaul::link
