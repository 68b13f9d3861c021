// SPDX-License-Identifier: Apache-2.0
// The far half's connection to the client: shakes hands with it as the server that upstream.h has verified,
// with a certificate of [[tls_server]], and then has the secrets. If another device holds the key, it waits
// for that device.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/module.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/slow_answer.h"
#include "proxy/modules/tls/upstream.h"

namespace longhaul::tls {

class Downstream final : private LegUser {
 public:
  // `leg` as Decision leaves it, `entry` the policy's. The client gets `leaf` if there is one, otherwise the
  // table's certificate. `server` has shaken hands, and outlives this object. `memory`: of all modules, in
  // which handshakes that wait for a key count; null: nowhere.
  Downstream(std::unique_ptr<Leg> leg, std::shared_ptr<const Policy> policy, const Entry& entry,
             const Upstream& server, Certificate leaf, std::shared_ptr<modules::Memory> memory = nullptr);

  enum class Next : std::uint8_t {
    more,    // more records of the client are needed
    waits,   // for the key: only next_timeout() and on_timeout() may be called until the result changes
    done,    // secrets() can be called
    failed,  // see error()
    no_key,  // see why(); nothing was sent to the client
  };
  // Output to the client is taken with leg().drain(), after any result except `waits` and `no_key`.
  Next shake_hands(modules::TimePoint now);
  bool is_waiting() const { return slow_ != nullptr; }
  Next on_timeout(modules::TimePoint now);
  // How often to check whether the key has signed, which takes 1 to 50 ms.
  static constexpr modules::Duration kLooked = std::chrono::milliseconds(1);

  // Not while it waits.
  Leg& leg() { return *leg_; }
  unsigned long error() const { return error_; }  // the oldest OpenSSL error
  const std::string& why() const { return why_; }
  // After `more`: the secrets, as soon as they can be known (TrafficSecrets::foresee()), once. From then on
  // nothing of leg().drain() goes to the client, because the near half numbers the records.
  std::optional<Keys> early_keys(const std::string& name);
  bool gave_early_keys() const { return gave_early_keys_; }
  // For the near half, once: the secrets, unless it has them, and the sessions that the client may resume
  // later. Returns nullopt if this program does not support the suite. `last_said`: output to the client;
  // `client_records`: records of the client so far.
  struct ForTwin {
    std::vector<Message> messages;
    std::string version, suite;  // for display
  };
  std::optional<ForTwin> secrets(Bytes last_said, std::uint64_t client_records, const std::string& name);
  // For the near half: the data that the client sent before the near half had the secrets. Returns nullopt if
  // it was already reported that this is too much.
  std::optional<Said> said(Bytes plain);

 private:
  // How long it waits at most.
  static constexpr modules::Duration kSlowest = std::chrono::seconds(5);

  // LegUser
  int on_client_hello(SSL* ssl) override;
  Bytes choose_protocol() const override { return server_.protocol(); }
  Bytes certificate_status(const X509* certificate) const override { return server_.status_of(certificate); }
  void on_secret(std::string_view line) override { secrets_.note(line); }
  void on_new_session(SSL_SESSION* session) override { keep(session_bytes(session)); }
  void on_ticket(Bytes message) override;

  Next shake_slowly(modules::TimePoint now);
  Next take_answer();
  Next lack_key(const std::string& why);
  Next shook(int result, unsigned long error);
  void keep(SessionBytes session);

  const std::shared_ptr<const Policy> policy_;
  const Entry& entry_;
  const Upstream& server_;
  const Certificate leaf_;
  std::shared_ptr<modules::Memory> memory_;
  std::unique_ptr<Leg> leg_;
  std::shared_ptr<SlowAnswer> slow_;  // holds leg_ meanwhile
  modules::TimePoint slow_until_{};
  TrafficSecrets secrets_;
  struct Kept {
    SessionBytes session;
    Slice ticket;
  };
  std::vector<Kept> sessions_;
  bool gave_early_keys_ = false;
  unsigned long error_ = 0;
  std::string why_;
  std::size_t said_bytes_ = 0;
};

}  // namespace longhaul::tls
