// SPDX-License-Identifier: Apache-2.0
// The far half's connection with the server: shakes hands as the client's deputy, and verifies the server. What the server
// gets to hear after that is for the far half to say.
#pragma once
#include <string>

#include "proxy/modules/tls/leg.h"

namespace longhaul::tls {

class Upstream final : private LegUser {
 public:
  // `protocols`: as the client offers them (hello_protocols()). `asks_status`: for what the authority says of the certificate.
  Upstream(SSL_CTX* context, const std::string& name, Bytes protocols, bool asks_status);

  // As browsers do: by subjectAltName alone, and by wildcards for whole labels alone.
  void verify_alternative_names();

  enum class Next : std::uint8_t {
    more,       // to be sent with drain(), and then it waits
    done,       // the same; it is verified
    refused,    // nothing may be sent any more; why() says what happened
    wants_certificate,  // the same: of the client
    no_protocol,        // the same: none of those that this client offers
  };
  Next shake_hands();
  const std::string& why() const { return why_; }  // for people

  Leg& leg() { return leg_; }
  // After the handshake; empty: none.
  Bytes protocol() const;
  const X509* certificate() const { return SSL_get0_peer_certificate(leg_.ssl()); }
  // What the authority says of this certificate, if it is the server's own: of another it would say nothing true, and
  // clients would refuse it.
  Bytes status_of(const X509* certificate) const;

 private:
  void on_certificate_request() override { wants_certificate_ = true; }

  Leg leg_;
  bool wants_certificate_ = false;
  std::string why_;
};

}  // namespace longhaul::tls
