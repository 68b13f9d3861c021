// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 without I/O: converts ciphertext to plaintext and back. libssl does the handshake; tls_records.h
// encrypts and decrypts the records after it. Both sides present a certificate, of which only the fingerprint
// of the key is used. The caller accepts or refuses that key before the peer proves that it has the private
// key.
#pragma once
#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "codecs/byte_writer.h"
#include "codecs/result.h"
#include "crypto/secret.h"
#include "crypto/tls_records.h"
#include "proxy/identity/preshared_key.h"
#include "proxy/link/io/key_log.h"
#include "proxy/link/io/refusal.h"
#include "proxy/link/io/tls_context.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class TlsEngine {
 public:
  // Limit of handshake bytes from the other side: its certificate may have 8 KiB, and all other messages
  // together are shorter.
  static constexpr std::size_t kMostHandshakeBytes = 16 * 1024, kMostCertificateBytes = 8 * 1024;
  // This side's data for a key that it accepts.
  struct KnownKey {
    std::shared_ptr<const identity::PresharedKey> preshared{};  // null if there is none
  };
  // Returns the data for the key with this fingerprint; nullopt to refuse the key.
  using FindKey = std::function<std::optional<KnownKey>(const std::string& fingerprint)>;

  // Sets callbacks on the SSL_CTX of a TlsContext, through which its engines receive keys.
  static void set_callbacks(SSL_CTX* context);

  TlsEngine(const TlsContext& context, Side side, FindKey find);
  TlsEngine(const TlsEngine&) = delete;
  TlsEngine& operator=(const TlsEngine&) = delete;

  // Processes bytes from the network: appends the decrypted data, and advances the handshake. After an error
  // the connection is over; the rest of outgoing() (an alert) may still be sent.
  Result<void> receive(Bytes ciphertext, Buffer& plain);
  // Encrypts. Before the handshake is done, only an empty span may be passed, which starts it.
  Result<void> send(Bytes plain) { return send_pieces(std::span(&plain, 1)); }
  // The same for several pieces, in order.
  Result<void> send_pieces(std::span<const Bytes> pieces);
  // Changes the key for later records. Happens automatically long before the usage limit of a key.
  Result<void> renew_key();
  // Notifies the peer that no more data follows.
  void close();

  // Secret bytes shared by the two ends of this connection, different for each label and context (RFC 8446,
  // section 7.5). Call only after the handshake. The arguments are fixed by our code, so an error can only
  // come from OpenSSL.
  Result<SecretBytes> export_keying_material(std::string_view label, Bytes context, std::size_t size) const;

  bool established() const { return established_; }
  bool closed_by_peer() const { return closed_by_peer_; }
  // Fingerprint of the key that the other side presented, "sha256:…"; proved once the handshake is done,
  // empty before the key arrives.
  const std::string& peer_fingerprint() const { return peer_fingerprint_; }
  const std::string& own_fingerprint() const { return own_fingerprint_; }
  // Ciphertext to be sent; the caller removes it from the front.
  Buffer& outgoing() { return outgoing_; }
  // OpenSSL's text for the last error.
  const std::string& error_text() const { return error_text_; }
  // The same error as a Refusal. Valid after a failed handshake.
  Refusal refusal() const { return refusal_; }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  static int bio_read(BIO* bio, char* out, std::size_t size, std::size_t* read);
  static int bio_write(BIO* bio, const char* data, std::size_t size, std::size_t* written);
  static long bio_control(BIO* bio, int command, long number, void* pointer);
  static BIO_METHOD* bio_method();
  static void take_secret(const SSL* ssl, const char* line);
  static int check_key(X509_STORE_CTX* shown, void*);

  Result<void> shake_hands();
  Result<void> take_over();
  void log_keys();
  void mix_in_preshared(std::string_view label, SecretBytes& secret) const;
  Result<void> receive_record(Bytes record, Buffer& plain);
  Result<void> on_alert(Bytes alert);
  Result<void> on_handshake_message(Bytes message);
  Result<void> failure();
  Result<void> refuse(std::uint8_t alert);

  std::unique_ptr<SSL, Free> ssl_;
  Side side_;
  FindKey find_;
  KnownKey peer_key_;
  bool heard_ = false;               // a record has been decrypted
  std::size_t handshake_bytes_ = 0;  // handshake bytes received
  // The handshake's traffic secrets, until take_over().
  SecretBytes dialler_secret_, acceptor_secret_;
  std::shared_ptr<KeyLog> key_log_;
  std::string key_log_lines_;  // until the peer has proved its key
  std::optional<RecordSealer> sealer_;
  std::optional<RecordOpener> opener_;
  Bytes incoming_;  // bytes that the BIO may read now
  Buffer partial_;  // the beginning of an incomplete record
  Buffer outgoing_;
  std::uint64_t sent_under_key_ = 0;
  bool established_ = false;
  bool closed_by_peer_ = false;
  bool answer_key_update_ = false;
  std::string peer_fingerprint_, own_fingerprint_;
  std::string error_text_;
  Refusal refusal_ = Refusal::failed;
};

}  // namespace longhaul::link
