// SPDX-License-Identifier: Apache-2.0
// The connection with the client at the near half after the handshake: opens its records and seals those for
// it, with the limits that both versions set. Alerts and changes of keys are answered here; near.h has the
// plaintext.
#pragma once
#include <cstdint>

#include "proxy/modules/tls/layer.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/records.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

class SealedClient {
 public:
  // `secrets` must fit (Layer::fits()). `out` outlives this.
  SealedClient(twin::Outputs<Message>& out, const Layer::Secrets& secrets) : out_(out), layer_(secrets) {}

  bool is_1_2() const { return layer_.is_1_2(); }

  enum class Next : std::uint8_t {
    more,     // records of the client
    closed,   // close_notify: nothing follows (RFC 8446, section 6.1)
    aborted,  // by the client, behind the plaintext
    failed,   // it was told so by an alert; the plaintext must not be used
  };
  // Appends the plaintext of all that has come.
  Next read(Records& records, Buffer& plain);
  void send(Bytes plain);
  void close();  // close_notify

 private:
  void seal(ContentType type, Bytes plain);
  Next fail(std::uint8_t alert);
  Next on_alert(Bytes alert) const;
  Next on_handshake_message(Bytes message);
  void update_keys();

  twin::Outputs<Message>& out_;
  Layer layer_;
  std::uint64_t sealed_bytes_ = 0;                     // under this key
  std::uint64_t opened_bytes_ = 0, without_data_ = 0;  // of the client: data, and records that have none
};

}  // namespace longhaul::tls
