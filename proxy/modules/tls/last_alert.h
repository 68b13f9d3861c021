// SPDX-License-Identifier: Apache-2.0
// The client's fatal alert to the server, as the last record of the far half's connection with it: libssl
// does not send alerts on request, so this record is encrypted here, with the secrets of libssl's key log.
#pragma once
#include <cstdint>
#include <string_view>

#include "codecs/byte_writer.h"
#include "proxy/modules/tls/traffic.h"

namespace longhaul::tls {

class LastAlert {
 public:
  // Lines of libssl's key log.
  void note(std::string_view line);
  // What libssl sends after the handshake (LegUser::on_sent()).
  void sent(int type, Bytes sent);

  enum class When : std::uint8_t {
    shaking,  // instead of the client's Finished (TLS 1.3); in TLS 1.2 the same as `after`
    after,    // after all that libssl has sent
  };
  // Once, after libssl's handshake. Empty if this program does not support the suite, or if libssl has
  // changed its key, which it does only when the server asks for it.
  Buffer seal(SSL* ssl, std::uint8_t description, When when);

 private:
  TrafficSecrets secrets_;
  SecretBytes shaking_;  // of the client's handshake records in TLS 1.3
  std::uint64_t records_ = 0;
  bool has_new_key_ = false;
};

}  // namespace longhaul::tls
