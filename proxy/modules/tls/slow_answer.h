// SPDX-License-Identifier: Apache-2.0
// One step of the handshake with a client whose key another device holds: runs on the key's thread, while the
// far half waits. It has copies of everything that libssl may need, so the far half may end meanwhile.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "proxy/modules/memory.h"
#include "proxy/modules/tls/leg.h"
#include "proxy/modules/tls/policy.h"
#include "proxy/modules/tls/traffic.h"

namespace longhaul::tls {

class SlowAnswer final : private LegUser, public std::enable_shared_from_this<SlowAnswer> {
 public:
  struct Said {
    Buffer protocol, status;  // LegUser::choose_protocol(), certificate_status()
  };
  // `entry` is the policy's. `memory`: of all modules, as long as this lives, which may be after the far
  // half; null: it is not counted.
  SlowAnswer(std::shared_ptr<const Policy> policy, const Entry& entry, std::unique_ptr<Leg> leg,
             TrafficSecrets secrets, Said said, std::shared_ptr<modules::Memory> memory)
      : policy_(std::move(policy)),
        entry_(entry),
        leg_(std::move(leg)),
        said_(std::move(said)),
        secrets_(std::move(secrets)),
        counted_(std::move(memory), kBytes) {}
  static constexpr std::uint64_t kBytes = 32 * 1024;  // about what libssl has for one connection

  // Returns false if too many handshakes wait for the key; then continue as if the key were not available.
  bool begin();
  // The functions below may be called only when it is done.
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }

  int result() const { return result_; }  // Leg::shake_hands()
  unsigned long error() const { return error_; }  // the oldest OpenSSL error
  // Why the key is not available, or has failed; empty otherwise.
  const std::string& failure() const { return failure_; }
  // libssl calls `user` from now on.
  std::unique_ptr<Leg> take_leg(LegUser& user);
  TrafficSecrets take_secrets() { return std::move(secrets_); }
  std::vector<SessionBytes> take_sessions() { return std::move(sessions_); }

 private:
  int on_client_hello(SSL* ssl) override;
  Bytes choose_protocol() const override { return said_.protocol; }
  Bytes certificate_status(const X509*) const override { return said_.status; }
  void on_secret(std::string_view line) override { secrets_.note(line); }
  void on_new_session(SSL_SESSION* session) override { sessions_.push_back(session_bytes(session)); }

  void shake_hands(EVP_PKEY* key, const std::string& failure);

  const std::shared_ptr<const Policy> policy_;
  const Entry& entry_;
  std::unique_ptr<Leg> leg_;
  const Said said_;
  EVP_PKEY* key_ = nullptr;  // during shake_hands()
  TrafficSecrets secrets_;
  std::vector<SessionBytes> sessions_;
  const modules::MemoryShare counted_;
  int result_ = SSL_ERROR_SSL;
  unsigned long error_ = 0;
  std::string failure_;
  std::atomic<bool> is_done_ = false;
};

}  // namespace longhaul::tls
