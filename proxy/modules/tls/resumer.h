// SPDX-License-Identifier: Apache-2.0
// One handshake at the near half with a client that may resume a session: libssl without a certificate. It
// sends nothing until it is certain that the session is resumed, so that the same ClientHello can still be
// sent to the far half.
#pragma once
#include <string>

#include "proxy/modules/tls/leg.h"
#include "proxy/modules/tls/sessions.h"
#include "proxy/modules/tls/traffic.h"

namespace longhaul::tls {

Context context_to_resume();  // Throws std::bad_alloc

class Resumer final : private LegUser {
 public:
  // All outlive this object.
  Resumer(SSL_CTX* context, Sessions& sessions, const Sessions::Place& place);

  enum class Next : std::uint8_t {
    more,    // needs another record
    no,      // no session is resumed, and nothing was sent; permanent
    begun,   // certain that the session is resumed
    done,    // the handshake is completed, after `begun`
    failed,  // after `begun`
  };
  // Takes one record of the client. Output is taken with drain(), unless the result is `no`.
  Next take(modules::TimePoint now, Bytes record);
  Slice drain() { return std::move(out_); }

  const std::string& name() const { return name_; }
  const std::string& entry() const { return entry_; }
  bool is_private() const { return is_private_; }
  Bytes protocol() const { return protocol_; }          // empty: none
  const Traffic& traffic() const { return *traffic_; }  // after `done`

 private:
  // LegUser
  int on_client_hello(SSL* ssl) override;
  Bytes choose_protocol() const override { return protocol(); }
  void on_secret(std::string_view line) override { secrets_.note(line); }
  SSL_SESSION* find_session(Bytes id) override;
  void on_new_session(SSL_SESSION* session) override;

  Sessions& sessions_;
  const Sessions::Place place_;
  modules::TimePoint now_{}, until_{};
  Leg leg_;
  bool has_begun_ = false;
  Slice out_;
  std::string name_, entry_;
  bool is_private_ = false;
  Buffer offered_, protocol_;
  TrafficSecrets secrets_;
  std::optional<Traffic> traffic_;
};

}  // namespace longhaul::tls
