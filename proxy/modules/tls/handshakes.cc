// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/handshakes.h"

#include <algorithm>

#include "proxy/modules/tls/far_plaintext.h"
#include "proxy/modules/tls/reasons.h"
#include "proxy/modules/tls/refusal.h"

namespace longhaul::tls {
namespace {

constexpr modules::Duration kServerRemembered = std::chrono::minutes(10);
constexpr modules::Duration kKeyRemembered = std::chrono::minutes(1);

}  // namespace

Handshakes::Handshakes(Site& site, std::shared_ptr<const Policy> policy, const modules::Ends& ends,
                       const Wanted& wanted, std::unique_ptr<Leg> hello, twin::Outputs<Message>& out)
    : site_(site),
      policy_(std::move(policy)),
      ends_(ends),
      wanted_(wanted),
      out_(out),
      is_resumed_(!hello),
      hello_(std::move(hello)),
      server_(std::make_unique<Upstream>(wanted.entry->to_server.get(), wanted.name, wanted.protocols,
                                         wanted.asks_status)),
      client_records_(wanted.hello_records) {
  // Mint::leaf() copies no other names, and says so.
  if (!wanted.entry->mint) server_->verify_alternative_names();
  if (wanted.ech) server_->ask_for_ech();
}

// ------------------------------------------------------------------------------------- with the server

Handshakes::Next Handshakes::begin(TimePoint now) { return shake_with_server(now); }

Handshakes::Next Handshakes::from_server(TimePoint now, Bytes bytes) {
  server_->leg().feed(bytes);
  if (is_asking() && !slow_leaf_) return shake_with_server(now);
  if (server_->leg().unread() <= kMostEarlyBytes) return Next::more;
  return is_asking() ? pass(reasons::tls_server_floods) : Next::failed;
}

Handshakes::Next Handshakes::shake_with_server(TimePoint now) {
  const auto next = server_->shake_hands();
  if (next == Upstream::Next::more || next == Upstream::Next::done) {
    // The server is done when the client is: if the client fails, the server learns of it in its handshake.
    if (next == Upstream::Next::more || !server_->may_wait()) flush(*server_, out_);
    if (next == Upstream::Next::more) return Next::more;
    // Only the server can read the name that the client wants. Of the clients that send random values instead
    // (GREASE), one in 256 passes, too.
    if (wanted_.ech && has_ech_key(server_->ech_configs(), *wanted_.ech, wanted_.name))
      return pass(reasons::tls_ech);
    return wanted_.entry->mint ? mint(now) : answer(now, nullptr);
  }
  note_refusal(server_->why());
  // Another client may offer a common protocol, so this is not remembered.
  if (next == Upstream::Next::no_protocol) return pass(reasons::tls_server_refused);
  return refuse(now, next == Upstream::Next::wants_certificate ? reasons::tls_client_certificate
                                                               : reasons::tls_server_refused);
}

// The client learns of an end after its handshake, as it would from the server itself.
Handshakes::Next Handshakes::server_ended(TimePoint now, modules::Ending ending) {
  const bool is_reset = ending == modules::Ending::reset;
  if (is_asking() && (is_reset || !slow_leaf_)) return refuse(now, reasons::tls_server_refused);
  return is_reset ? Next::failed : Next::more;
}

// A client that has resumed is held to the same: it gets only what a full handshake would show it today.
Handshakes::Next Handshakes::mint(TimePoint now) {
  Mint& mint = *wanted_.entry->mint;
  const X509* const certificate = server_->certificate();
  if (!slow_leaf_) {
    slow_leaf_ = mint.begin(now, policy_, certificate, wanted_.name, site_.memory);
    slow_until_ = now + SlowLeaf::kSlowest;
  }
  const std::string lacks = "the key of the minting CA is not available: ";
  if (slow_leaf_ && !slow_leaf_->is_done())
    return now >= slow_until_ ? lack_key(now, lacks + "the token has not signed within five seconds") : Next::more;
  const auto slow = std::exchange(slow_leaf_, nullptr);
  if (slow && !slow->failure().empty()) return lack_key(now, lacks + slow->failure());
  auto minted = mint.leaf(now, certificate, wanted_.name, slow.get());
  if (minted.leaf) return answer(now, std::move(minted.leaf));
  note_refusal(minted.why_not);
  return refuse(now, reasons::tls_not_minted);
}

// ------------------------------------------------------------------------------------- with the client

Handshakes::Next Handshakes::answer(TimePoint now, Certificate leaf) {
  if (is_resumed_) return answer_resumed();
  client_ = std::make_unique<Downstream>(std::move(hello_), policy_, *wanted_.entry, *server_,
                                         std::move(leaf), site_.memory);
  return client_shook(now, client_->shake_hands(now));
}

// The near half answers the client, with the protocol of the resumed session.
Handshakes::Next Handshakes::answer_resumed() {
  const Bytes expected = Bytes(wanted_.protocols).subspan(wanted_.protocols.empty() ? 0 : 1);
  if (!std::ranges::equal(server_->protocol(), expected)) return Next::failed;
  detail_ = "TLS for " + wanted_.name + ", decrypted, resumed" +
            (wanted_.entry->mint ? ", certificate minted" : "") + ", " + wanted_.entry->table;
  return Next::done;
}

Handshakes::Next Handshakes::from_client(TimePoint now, Bytes record) {
  ++client_records_;
  client_->leg().feed(record);
  return client_shook(now, client_->shake_hands(now));
}

Handshakes::Next Handshakes::on_timeout(TimePoint now) {
  if (slow_leaf_) return mint(now);
  return waits_for_key() ? client_shook(now, client_->on_timeout(now)) : Next::more;
}

Handshakes::Next Handshakes::client_shook(TimePoint now, Downstream::Next next) {
  if (next == Downstream::Next::waits) return Next::more;
  if (next == Downstream::Next::no_key) return lack_key(now, client_->why());
  const Slice bytes = client_->leg().drain();
  // The client shares no curve or signature algorithm with our certificate, and does not receive our alert.
  if (next == Downstream::Next::failed && !has_answered_) return pass(reasons::tls_version);
  has_answered_ = true;
  if (next == Downstream::Next::more && give_early_keys(bytes)) return Next::more;
  if (bytes.size() > 0 && !client_->gave_early_keys()) out_.pass_on(bytes);
  if (next == Downstream::Next::more) return Next::more;
  if (next == Downstream::Next::done) {
    flush(*server_, out_);
    return give_keys(bytes.bytes());
  }
  note_client_refusal(site_.remembered, ends_, wanted_.name, now, client_->error());
  return client_failed();
}

Handshakes::Next Handshakes::client_failed() {
  const auto alert = alert_of(client_->error());
  if (!alert) return Next::failed;
  Slice record = server_->last_alert(*alert, LastAlert::When::shaking);
  if (record.empty()) return Next::failed;
  out_.to_lan(std::move(record));
  // The near half passed the alert on as a part of the handshake, and would answer it with close_notify.
  if (client_->gave_early_keys()) out_.tell(Truncated{});
  return Next::ends;
}

bool Handshakes::give_early_keys(const Slice& flight) {
  if (flight.empty() || flight.size() > Keys::kMostFlightBytes) return false;
  auto keys = client_->early_keys(wanted_.name);
  if (!keys) return false;
  keys->flight = flight;
  out_.tell(*keys);
  return true;
}

Handshakes::Next Handshakes::give_keys(Bytes last_said) {
  const auto for_twin = client_->secrets(last_said, client_records_, wanted_.name);
  if (!for_twin) return Next::failed;
  for (const Message& message : for_twin->messages) out_.tell(message);
  detail_ = for_twin->version + " for " + wanted_.name + ", decrypted" +
            (wanted_.entry->mint ? ", certificate minted" : "");
  if (!for_twin->suite.empty()) (detail_ += ", ") += for_twin->suite;
  (detail_ += ", ") += wanted_.entry->table;
  return Next::done;
}

// -------------------------------------------------------------------------------------------- failures

// The client has received nothing, unless it was asked for another key share.
Handshakes::Next Handshakes::lack_key(TimePoint now, const std::string& why) {
  note_refusal(why);
  site_.remembered.note(Remembered::of_server(ends_, wanted_.name), reasons::tls_key_unavailable,
                        now + kKeyRemembered);
  reason_ = reasons::tls_key_unavailable;
  return has_answered_ ? Next::failed : Next::passes;
}

Handshakes::Next Handshakes::refuse(TimePoint now, modules::Reason reason) {
  site_.remembered.note(Remembered::of_server(ends_, wanted_.name), reason, now + kServerRemembered);
  return pass(reason);
}

Handshakes::Next Handshakes::pass(modules::Reason reason) {
  reason_ = reason;
  return Next::passes;
}

}  // namespace longhaul::tls
