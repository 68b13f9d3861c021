// SPDX-License-Identifier: Apache-2.0
// The connection to the client at the near half after the handshake: decrypts its records and encrypts those
// to it, within the limits of both TLS versions. Handles alerts and changes of keys; near.h has the
// plaintext.
#pragma once
#include <cstdint>
#include <vector>

#include "proxy/modules/tls/layer.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/records.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

// Descriptions of alerts that do not report a failure (RFC 8446, section 6.1).
inline constexpr std::uint8_t kCloseNotify = 0, kUserCanceled = 90;

class SealedClient {
 public:
  // `secrets` must fit (Layer::fits()). `out` outlives this object.
  SealedClient(twin::Outputs<Message>& out, const Layer::Secrets& secrets) : out_(out), layer_(secrets) {}

  bool is_1_2() const { return layer_.is_1_2(); }

  enum class Next : std::uint8_t {
    more,     // more records of the client are needed
    closed,   // close_notify: nothing follows (RFC 8446, section 6.1)
    aborted,  // by the client with a fatal alert, after the plaintext: see alert_heard()
    failed,   // an alert was sent to the client; the plaintext must not be used
  };
  // Appends the plaintext of all records received.
  Next read(Records& records, Buffer& plain);
  // After early keys: whether this is the first record that the client sealed with them.
  bool is_next(Bytes record) { return layer_.is_next(record); }
  std::optional<std::uint8_t> alert_heard() const { return alert_heard_; }
  // Together with what follows until flush(), in as few records as possible: a message of a server that came
  // in one record need not arrive in several.
  void send(Slice plain);
  void flush();
  // After everything sent before.
  void send_ticket(Bytes message) { flush(), seal(ContentType::handshake, message); }
  void close();  // close_notify
  void alert(std::uint8_t description);  // fatal

 private:
  void seal(ContentType type, Bytes plain) { seal(type, std::span(&plain, 1)); }
  void seal(ContentType type, std::span<const Bytes> pieces);
  Next fail(std::uint8_t description);
  Next on_alert(Bytes alert);
  Next on_handshake_message(Bytes message);
  void update_keys();

  twin::Outputs<Message>& out_;
  Layer layer_;
  std::optional<std::uint8_t> alert_heard_;
  std::vector<Slice> unsealed_;
  std::size_t unsealed_bytes_ = 0;
  std::uint64_t sealed_bytes_ = 0;                     // under the current key
  std::uint64_t opened_bytes_ = 0, without_data_ = 0;  // of the client: data, and records without data
};

}  // namespace longhaul::tls
