// SPDX-License-Identifier: Apache-2.0
// The two handshakes of a terminated connection at the far half: with the server, in the client's place, and,
// once the server is verified, with the client, in the server's. If one fails, it says what becomes of the
// connection.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "proxy/modules/tls/decision.h"
#include "proxy/modules/tls/downstream.h"
#include "proxy/modules/tls/far_site.h"
#include "proxy/modules/tls/slow_leaf.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

class Handshakes {
 public:
  using TimePoint = modules::TimePoint;
  // Kept of the server's data until the client's handshake is done.
  static constexpr std::size_t kMostEarlyBytes = 256 * 1024;

  // `hello`: the client's leg as Decision leaves it; null: the client has resumed, and only the server's
  // handshake is needed. `policy` has the entry of `wanted`. The references outlive this object.
  Handshakes(Site& site, std::shared_ptr<const Policy> policy, const modules::Ends& ends,
             const Wanted& wanted, std::unique_ptr<Leg> hello, twin::Outputs<Message>& out);

  enum class Next : std::uint8_t {
    more,    // input, or time if a key is waited for
    done,    // take_server() and take_client() can be called; the near half has been sent the secrets
    passes,  // not terminated: the client has received nothing, and the server gets its ClientHello
    ends,    // the client has failed with an alert, which the server has been sent: only ends follow
    failed,  // both connections must be reset
  };
  Next begin(TimePoint now);
  Next from_server(TimePoint now, Bytes bytes);
  Next from_client(TimePoint now, Bytes record);  // only if reads_client()
  Next server_ended(TimePoint now, modules::Ending ending);
  Next on_timeout(TimePoint now);

  // The client's handshake has not begun.
  bool is_asking() const { return !client_; }
  bool reads_client() const { return client_ && !client_->is_waiting(); }
  // For a key in another device; on_timeout() is to be called after Downstream::kLooked.
  bool waits_for_key() const { return slow_leaf_ || (client_ && client_->is_waiting()); }
  // From here on the connection cannot pass any more.
  bool has_answered_client() const { return has_answered_; }

  // Unless there is more to come: why the connection is not terminated, and a text for display.
  modules::Reason reason() const { return reason_; }
  const std::string& detail() const { return detail_; }

  // Both at once: the client's connection refers to the server's. Null if the client has resumed.
  std::unique_ptr<Upstream> take_server() { return std::move(server_); }
  std::unique_ptr<Downstream> take_client() { return std::move(client_); }

 private:
  Next shake_with_server(TimePoint now);
  Next mint(TimePoint now);
  Next answer(TimePoint now, Certificate leaf);
  Next answer_resumed();
  Next client_shook(TimePoint now, Downstream::Next next);
  Next client_failed();
  bool give_early_keys(const Slice& flight);
  Next give_keys(Bytes last_said);
  Next lack_key(TimePoint now, const std::string& why);
  Next refuse(TimePoint now, modules::Reason reason);  // remembers it: the next connection passes at once
  Next pass(modules::Reason reason);
  void note_refusal(const std::string& why) { detail_ = not_decrypted(wanted_.name, why); }

  Site& site_;
  const std::shared_ptr<const Policy> policy_;
  const modules::Ends& ends_;
  const Wanted& wanted_;
  twin::Outputs<Message>& out_;
  const bool is_resumed_;
  std::unique_ptr<Leg> hello_;  // until the client is answered
  std::unique_ptr<Upstream> server_;
  std::shared_ptr<SlowLeaf> slow_leaf_;  // after the handshake with the server
  TimePoint slow_until_{};
  std::unique_ptr<Downstream> client_;
  std::uint64_t client_records_;
  bool has_answered_ = false;
  modules::Reason reason_{};
  std::string detail_;
};

}  // namespace longhaul::tls
