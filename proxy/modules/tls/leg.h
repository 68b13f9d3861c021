// SPDX-License-Identifier: Apache-2.0
// One TLS connection of libssl without I/O: bytes of the network in and out of memory. The far half has two, one with
// the client and one with the server.
#pragma once
#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "codecs/byte_writer.h"
#include "codecs/slice.h"
#include "crypto/secret.h"
#include "proxy/modules/tls/policy.h"

namespace longhaul::tls {

// What libssl asks during a handshake: with a client, but for the last function.
class LegUser {
 public:
  virtual ~LegUser() = default;
  virtual int on_client_hello(SSL*) { return SSL_CLIENT_HELLO_SUCCESS; }  // or _RETRY, _ERROR
  // One of those that the client offers; empty: none.
  virtual Bytes choose_protocol() const { return {}; }
  // Of the certificate that the client gets: what its authority says of it (OCSP, RFC 6066, section 8); empty: nothing.
  // Asked for only if the client asks.
  virtual Bytes certificate_status(const X509* /*certificate*/) const { return {}; }
  virtual void on_secret(std::string_view /*key_log_line*/) {}
  // With hand_out_sessions(): one that the client may resume later.
  virtual void on_new_session(SSL_SESSION*) {}
  // One that the client wants to resume, with a reference for libssl; null: no.
  virtual SSL_SESSION* find_session(Bytes /*id*/) { return nullptr; }
  // The server asks for a certificate; it gets none.
  virtual void on_certificate_request() {}
};

struct FreeAuthorities {
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
};
using Authorities = std::unique_ptr<X509_STORE, FreeAuthorities>;
Authorities authorities_of_the_system();  // throws std::bad_alloc

// No early data, no renegotiation, no compression; TLS 1.2 with AEAD suites, or 1.3.
// Throw std::bad_alloc.
Context context_to_client();
Context context_undecided();  // the same without a certificate; asks on_client_hello()
Context context_to_server(X509_STORE* authorities);  // shares them; verifies by them, which nothing can turn off
// A client gets so many sessions in a handshake, or one if it resumes. They are its user's to keep, not libssl's.
inline constexpr std::size_t kSessions = 2;  // browsers begin several connections at a time
void hand_out_sessions(SSL_CTX* context, std::size_t sessions);

struct SessionBytes {
  std::string id;
  SecretBytes bytes;  // i2d_SSL_SESSION(); none if that fails
};
SessionBytes session_bytes(SSL_SESSION* session);

std::string last_error();  // OpenSSL's words for the oldest error of this thread, which is forgotten

class Leg {
 public:
  // Of the other end's handshake messages after its handshake (KeyUpdate, NewSessionTicket, HelloRequest): so
  // many, and one more for so many bytes of data. libssl answers each of them with work, and some with a
  // record.
  static constexpr std::uint64_t kMostMessages = 32, kDataForOneMessage = 64 << 10;

  Leg(SSL_CTX* context, LegUser& user);
  Leg(Leg&&) = delete;  // libssl refers to it

  SSL* ssl() const { return ssl_.get(); }
  void feed(Bytes from_network);
  Slice drain();  // to the network; may be empty
  std::size_t unread() const;

  // SSL_ERROR_NONE: it is done; WANT_READ: it needs more; WANT_CLIENT_HELLO_CB; anything else: it failed.
  int shake_hands();
  enum class Read : std::uint8_t { bytes, nothing, closed, failed };
  Read read(Buffer& plain);  // appends all that there is
  // read() has failed for that reason: there were more messages.
  bool is_flooded() const { return is_flooded_; }
  bool write(Bytes plain);
  void close();  // close_notify

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  void count_message();

  std::unique_ptr<SSL, Free> ssl_;
  BIO* in_;   // the SSL's
  BIO* out_;
  std::uint64_t messages_ = 0, read_bytes_ = 0;  // after the handshake
  bool is_flooded_ = false;
};

}  // namespace longhaul::tls
