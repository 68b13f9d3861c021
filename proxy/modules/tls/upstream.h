// SPDX-License-Identifier: Apache-2.0
// The far half's connection to the server: shakes hands on behalf of the client, and verifies the server. The
// far half decides what is sent to the server afterwards.
#pragma once
#include <string>

#include "proxy/modules/tls/ech.h"
#include "proxy/modules/tls/last_alert.h"
#include "proxy/modules/tls/leg.h"

namespace longhaul::tls {

class Upstream final : private LegUser {
 public:
  // `protocols`: as offered by the client (hello_protocols()). `asks_status`: requests the authority's status
  // of the certificate.
  Upstream(SSL_CTX* context, const std::string& name, Bytes protocols, bool asks_status);
  // Before the handshake: has the server send its configurations for ECH, if it has any.
  void ask_for_ech() { pretended_ = pretended_ech(); }

  // As in browsers: only subjectAltName is used, and wildcards only for whole labels.
  void verify_alternative_names();

  enum class Next : std::uint8_t {
    more,       // send the output of drain(), then wait for the server
    done,       // the same; the server is verified
    refused,    // nothing may be sent any more; see why()
    wants_certificate,  // the same: the server requires a certificate of the client
    no_protocol,        // the same: the server supports none of the client's protocols
  };
  Next shake_hands();
  const std::string& why() const { return why_; }  // for display

  Leg& leg() { return leg_; }
  // To the server; may be empty. Nothing after last_alert().
  Slice drain();
  // After `done`: TLS1_2_VERSION or TLS1_3_VERSION.
  int version() const { return SSL_version(leg_.ssl()); }
  // After `done`: whether the output of drain() is the client's Finished alone, for which the server can wait
  // until the client itself is done (TLS 1.3).
  bool may_wait() const { return version() == TLS1_3_VERSION; }
  // After `done`, once: the last record, with this fatal alert of the client (LastAlert::seal()). `shaking`:
  // and without the output of drain().
  Slice last_alert(std::uint8_t description, LastAlert::When when);
  // After the handshake; empty if there is none.
  Bytes protocol() const;
  const X509* certificate() const { return SSL_get0_peer_certificate(leg_.ssl()); }
  // The authority's status of this certificate if it is the server's own. For any other certificate the
  // status would be wrong, and clients would refuse it.
  Bytes status_of(const X509* certificate) const;
  // Those configurations (ECHConfigList); empty if there are none.
  Bytes ech_configs() const { return ech_configs_; }

 private:
  void on_secret(std::string_view line) override { alert_.note(line); }
  void on_sent(int type, Bytes sent) override { alert_.sent(type, sent); }
  void on_certificate_request() override { wants_certificate_ = true; }
  Bytes encrypted_hello() const override { return pretended_; }
  void on_ech_configs(Bytes configs) override { ech_configs_.assign(configs.begin(), configs.end()); }

  Leg leg_;
  LastAlert alert_;
  bool has_alerted_ = false;
  bool wants_certificate_ = false;
  Buffer pretended_, ech_configs_;
  std::string why_;
};

}  // namespace longhaul::tls
