// SPDX-License-Identifier: Apache-2.0
// One TLS connection of libssl without I/O: network bytes are exchanged in memory. The far half has two, one
// to the client and one to the server.
#pragma once
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "codecs/byte_writer.h"
#include "codecs/slice.h"
#include "crypto/secret.h"
#include "proxy/modules/tls/policy.h"

namespace longhaul::tls {

// Callbacks of libssl, most of them during a handshake: with a client, except the last four functions.
class LegUser {
 public:
  virtual ~LegUser() = default;
  virtual int on_client_hello(SSL*) { return SSL_CLIENT_HELLO_SUCCESS; }  // or _RETRY, _ERROR
  // One of the protocols that the client offers; empty: none.
  virtual Bytes choose_protocol() const { return {}; }
  // The status of the client's certificate from its authority (OCSP, RFC 6066, section 8); empty: none.
  // Called only if the client requests it.
  virtual Bytes certificate_status(const X509* /*certificate*/) const { return {}; }
  virtual void on_secret(std::string_view /*key_log_line*/) {}
  // After hand_out_sessions(): a session that the client may resume later.
  virtual void on_new_session(SSL_SESSION*) {}
  // The message that gives it to the client (RFC 8446, section 4.6.1), in TLS 1.3.
  virtual void on_ticket(Bytes /*message*/) {}
  // The session that the client wants to resume, with a reference for libssl; null: none.
  virtual SSL_SESSION* find_session(Bytes /*id*/) { return nullptr; }
  // The server requests a certificate; none is sent.
  virtual void on_certificate_request() {}
  // The extension encrypted_client_hello to the server; empty: none.
  virtual Bytes encrypted_hello() const { return {}; }
  // The server's configurations for it (ECHConfigList), within the handshake: not verified yet.
  virtual void on_ech_configs(Bytes) {}
  // After the handshake: the head of each record, or a message, that libssl sends (SSL_set_msg_callback()).
  virtual void on_sent(int /*type*/, Bytes) {}
};

struct FreeAuthorities {
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
};
using Authorities = std::unique_ptr<X509_STORE, FreeAuthorities>;
Authorities authorities_of_the_system();  // throws std::bad_alloc

// No early data, no renegotiation, no compression; TLS 1.2 with AEAD suites, or 1.3.
// Throw std::bad_alloc.
Context context_to_client();
Context context_undecided();  // the same without a certificate; calls on_client_hello()
Context context_to_server(X509_STORE* authorities);  // shares the authorities; always verifies by them
// The number of sessions for a client in a handshake, or one if it resumes. The user stores them, not libssl.
inline constexpr std::size_t kSessions = 2;  // browsers open several connections at once
void hand_out_sessions(SSL_CTX* context, std::size_t sessions);

struct SessionBytes {
  std::string id;
  SecretBytes bytes;  // i2d_SSL_SESSION(); empty if that fails
};
SessionBytes session_bytes(SSL_SESSION* session);

// The description of the fatal alert that the other end has sent (RFC 8446, section 6), if that is the error;
// never close_notify.
std::optional<std::uint8_t> alert_of(unsigned long error);
std::string last_error();  // the oldest OpenSSL error of this thread as text; removes it

class Leg {
 public:
  // Limit of the other end's handshake messages after its handshake (KeyUpdate, NewSessionTicket,
  // HelloRequest): that many, and one more for that many bytes of data. Each costs libssl work, and some
  // require a record in response.
  static constexpr std::uint64_t kMostMessages = 32, kDataForOneMessage = 64 << 10;

  Leg(SSL_CTX* context, LegUser& user);
  Leg(Leg&&) = delete;  // libssl refers to it

  SSL* ssl() const { return ssl_.get(); }
  // The messages of the handshake as both ends have them, from ClientHello on, until it is completed (RFC
  // 8446, section 4.4.1; after a HelloRetryRequest the transcript is another). To be asked for before the
  // first is read.
  void keep_transcript() { keeps_transcript_ = true; }
  Bytes transcript() const { return transcript_; }

  void feed(Bytes from_network);
  Slice drain();  // to the network; may be empty
  std::size_t unread() const;

  // SSL_ERROR_NONE: completed; WANT_READ: needs more; WANT_CLIENT_HELLO_CB; any other value: failed.
  int shake_hands();
  enum class Read : std::uint8_t { bytes, nothing, closed, failed };
  Read read(Buffer& plain);  // appends all available plaintext
  // Whether read() has failed because there were too many handshake messages.
  bool is_flooded() const { return is_flooded_; }
  // After read() has failed: the fatal alert of the other end, if there was one; never close_notify.
  std::optional<std::uint8_t> fatal_alert() const { return fatal_alert_; }
  bool write(Bytes plain);
  void close();  // close_notify

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  void note_message(int is_ours, Bytes message);
  void count_message();

  std::unique_ptr<SSL, Free> ssl_;
  BIO* in_;   // owned by the SSL
  BIO* out_;
  bool keeps_transcript_ = false;
  Buffer transcript_;
  std::uint64_t messages_ = 0, read_bytes_ = 0;  // after the handshake
  bool is_flooded_ = false;
  std::optional<std::uint8_t> fatal_alert_;
};

}  // namespace longhaul::tls
