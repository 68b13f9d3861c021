// SPDX-License-Identifier: Apache-2.0
// The results of libssl's handshake with a client for the record layer: suite, secrets, and how many records
// were sent under them.
#pragma once
#include <openssl/ssl.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "codecs/slice.h"
#include "crypto/secret.h"

namespace longhaul::tls {

struct Traffic {
  std::uint16_t suite = 0;
  SecretBytes client, server;
  std::uint64_t server_records = 0;
  bool is_1_2 = false;
};

class TrafficSecrets {
 public:
  // Lines of libssl's key log.
  void note(std::string_view line);
  // In TLS 1.3, once the server's Finished is sent: the same, before the first record. `transcript` is
  // Leg::transcript(). Returns nullopt if it cannot be known yet: after a HelloRetryRequest, and with a key
  // exchange that is not Diffie-Hellman.
  std::optional<Traffic> foresee(SSL* ssl, Bytes transcript) const;
  // After the handshake; `last_said`: libssl's output after the client's Finished. Returns nullopt if this
  // program does not support the suite.
  std::optional<Traffic> take(SSL* ssl, Bytes last_said);

 private:
  SecretBytes client_, server_;  // in TLS 1.3
};

}  // namespace longhaul::tls
