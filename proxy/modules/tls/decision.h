// SPDX-License-Identifier: Apache-2.0
// Decides whether a connection is terminated, and reads what its ClientHello requests. Nothing is sent before
// the decision.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "proxy/modules/tls/ech.h"
#include "proxy/modules/tls/leg.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/policy.h"
#include "proxy/modules/tls/remembered.h"

namespace longhaul::tls {

// The server of a connection that is terminated.
struct Wanted {
  const Entry* entry = nullptr;  // the policy's
  std::string name;              // of the server
  Buffer protocols;              // offered by the client (hello_protocols())
  bool asks_status = false;
  std::optional<EchOffer> ech;      // of a client that only pretends it is random
  std::uint64_t hello_records = 0;  // of the client so far; 0 if it has resumed
};

// For a client that has resumed a session at the near half. Returns nullopt if its connection is no longer
// terminated, or not in the same way.
std::optional<Wanted> wanted_by_resumed(const Resumed& resumed, const Policy& policy,
                                        const Remembered& remembered, const modules::Ends& ends,
                                        modules::TimePoint now);

// Display texts.
inline std::string not_decrypted(const std::string& name, const std::string& why) {
  return "TLS for " + name + " not decrypted: " + why;
}

class Decision final : private LegUser {
 public:
  // `undecided`: from context_undecided(). All outlive this object; `ends` has the server's address.
  Decision(SSL_CTX* undecided, const Policy& policy, const Remembered& remembered, const modules::Ends& ends);

  enum class Next : std::uint8_t {
    more,        // more records of the client are needed
    passes,      // permanently; see reason()
    terminated,  // take_wanted() and take_leg() can be called
  };
  Next take(modules::TimePoint now, Bytes record);

  modules::Reason reason() const { return reason_; }
  const std::string& detail() const { return detail_; }  // may be empty
  Wanted take_wanted() { return std::move(wanted_); }
  // The handshake continues where it calls LegUser::on_client_hello() again. Before that it needs another
  // user.
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
  std::uint64_t records_ = 0;
  modules::Reason reason_{};
  std::string detail_;
};

}  // namespace longhaul::tls
