// SPDX-License-Identifier: Apache-2.0
// Whether a connection is terminated, and what its ClientHello asks for. Nothing is sent before
// the decision.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "proxy/modules/tls/leg.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/policy.h"
#include "proxy/modules/tls/remembered.h"

namespace longhaul::tls {

// Of a connection that is terminated.
struct Wanted {
  const Entry* entry = nullptr;  // the policy's
  std::string name;              // of the server
  Buffer protocols;              // as the client offers them (hello_protocols())
  bool asks_status = false;
};

// The near half vouches for a client that has resumed. Nothing: its connection is not terminated any more, or
// not as before.
std::optional<Wanted> wanted_by_resumed(const Resumed& resumed, const Policy& policy,
                                        const Remembered& remembered, const modules::Ends& ends,
                                        modules::TimePoint now);

// Words for people.
inline std::string not_decrypted(const std::string& name, const std::string& why) {
  return "TLS for " + name + " not decrypted: " + why;
}

class Decision final : private LegUser {
 public:
  // `undecided` as from context_undecided(). All outlive this; `ends` has the server's address.
  Decision(SSL_CTX* undecided, const Policy& policy, const Remembered& remembered, const modules::Ends& ends);

  enum class Next : std::uint8_t {
    more,        // records of the client
    passes,      // reason(), for good
    terminated,  // wanted() and leg() can be taken
  };
  Next take(modules::TimePoint now, Bytes record);

  modules::Reason reason() const { return reason_; }
  const std::string& detail() const { return detail_; }  // may be empty
  Wanted take_wanted() { return std::move(wanted_); }
  // Its handshake goes on where it asks LegUser::on_client_hello() again. Before that it needs another user.
  std::unique_ptr<Leg> take_leg() { return std::move(leg_); }

 private:
  int on_client_hello(SSL* ssl) override;
  int pass(modules::Reason reason);

  const Policy& policy_;
  const Remembered& remembered_;
  const modules::Ends& ends_;
  std::unique_ptr<Leg> leg_;
  modules::TimePoint now_{};
  Wanted wanted_;
  modules::Reason reason_{};
  std::string detail_;
};

}  // namespace longhaul::tls
