// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/far.h"

#include <openssl/err.h>

#include <algorithm>

#include "proxy/modules/tls/reasons.h"
#include "proxy/modules/tls/refusal.h"

namespace longhaul::tls {
namespace {

constexpr modules::Duration kServerRemembered = std::chrono::minutes(10), kClientRemembered = std::chrono::hours(24);
constexpr modules::Duration kKeyRemembered = std::chrono::minutes(1);

}  // namespace

Far::Far(const modules::Ends& ends, const modules::Address& dialled, std::shared_ptr<Site> site, modules::PlaintextReaders readers)
    : readers_(std::move(readers)), ends_{.client = ends.client, .server = dialled, .server_port = ends.server_port},
      site_(std::move(site)), policy_(site_->policy) {
  if (!policy_ || !policy_->lists(ends_.server)) {
    splice({});
    return;
  }
  decision_.emplace(site_->undecided.get(), *policy_, site_->remembered, ends_);
}

void Far::on_surroundings(TimePoint now, const modules::Surroundings& told) {
  now_ = now;
  told_ = told;
  if (plaintext_ && state_ != State::over) proceed(plaintext_->on_surroundings(now, told));
  if (told.features.modules.value("tls") != 0 || state_ == State::aside || state_ == State::over) return;
  if (state_ == State::hello) return splice({});
  if (state_ == State::asking) return splice_again({});  // a resumed one fails
  fail();  // as in the near half
}

void Far::on_room(TimePoint now, const modules::Room& room) {
  now_ = now;
  if (plaintext_ && state_ != State::over) proceed(plaintext_->on_room(now, room));
}

void Far::give_up_memory(TimePoint now) {
  now_ = now;
  if (state_ == State::hello) return splice(modules::reasons::memory_limit);
  if (plaintext_ && state_ != State::over) proceed(plaintext_->give_up_memory(now));
}

// -------------------------------------------------------------------------------------------- from the client

void Far::from_stream(TimePoint now, Slice bytes) {
  now_ = now;
  switch (state_) {
    case State::aside:
      return out_.to_lan(std::move(bytes));
    case State::over:
      return;
    case State::open:
      proceed(plaintext_->from_client(now, bytes.bytes()));
      return;
    default:
      if (state_ <= State::asking || (waits_for_key() && !held_.empty())) append(held_, bytes.bytes());
      if (is_resumed_) return held_.size() > kMostResumedBytes ? fail() : void();
      records_.push(bytes.bytes());
      take_records();
      if (of_client_bytes() <= kMostHelloBytes) return;
      if (state_ == State::asking) return splice_again(reasons::tls_not_understood);
      state_ == State::hello ? splice(reasons::tls_not_understood) : fail();
  }
}

// One at a time, so that it is known after which of them the handshake is over.
void Far::take_records() {
  Bytes record;
  while (!waits_for_key() && (state_ == State::hello || state_ == State::answering || state_ == State::joined)) {
    switch (records_.next(record)) {
      case Records::Next::nothing:
        return;
      case Records::Next::invalid:
        return state_ == State::hello ? splice(reasons::tls_not_understood) : fail();
      case Records::Next::record:
        break;
    }
    ++client_records_;
    if (state_ == State::hello) {
      decide(decision_->take(now_, record));
      continue;
    }
    client_->leg().feed(record);
    state_ == State::answering ? client_shook(client_->shake_hands(now_)) : read_client();
  }
}

void Far::decide(Decision::Next next) {
  if (next == Decision::Next::more) return;
  detail_ = decision_->detail();
  if (next == Decision::Next::passes) return splice(decision_->reason());
  wanted_ = decision_->take_wanted();
  ask_server();
}

void Far::on_timeout(TimePoint now) {
  now_ = now;
  if (slow_leaf_ && mint()) return answer();
  if (!waits_for_key()) return;
  client_shook(client_->on_timeout(now));
  take_records();
}

// The client has heard nothing, unless it had been asked for another key share.
void Far::lack_key() {
  note_refusal(client_->why());
  site_->remembered.note(Remembered::of_server(ends_, wanted_.name), reasons::tls_key_unavailable, now_ + kKeyRemembered);
  if (!held_.empty()) return splice_again(reasons::tls_key_unavailable);
  reason_ = reasons::tls_key_unavailable;
  fail();
}

void Far::lack_authority(const std::string& why) {
  note_refusal("the key of the minting CA is not available: " + why);
  site_->remembered.note(Remembered::of_server(ends_, wanted_.name), reasons::tls_key_unavailable,
                         now_ + kKeyRemembered);
  splice_again(reasons::tls_key_unavailable);
}

void Far::client_shook(Downstream::Next next) {
  if (next == Downstream::Next::waits) return;
  if (next == Downstream::Next::no_key) return lack_key();
  const Slice bytes = client_->leg().drain();
  // It has no curve or signature in common with our certificate, and has not heard our alert.
  if (next == Downstream::Next::failed && !held_.empty()) return splice_again(reasons::tls_version);
  held_ = {};
  if (bytes.size() > 0) out_.pass_on(bytes);
  if (next == Downstream::Next::done) return give_keys(bytes.bytes());
  if (next == Downstream::Next::failed) end_after_refusal(client_->error());
}

// The client's next connections pass.
void Far::end_after_refusal(unsigned long error) {
  if (refuses_us(error))
    site_->remembered.note(Remembered::of_client(ends_, wanted_.name), reasons::tls_client_refused, now_ + kClientRemembered);
  fail();
}

void Far::give_keys(Bytes last_said) {
  auto for_twin = client_->secrets(last_said, client_records_, wanted_.name);
  if (!for_twin) return fail();
  for (const Message& message : for_twin->messages) out_.tell(message);
  detail_ = for_twin->version + " for " + wanted_.name + ", decrypted" + (leaf_ ? ", certificate minted" : "");
  if (!for_twin->suite.empty()) (detail_ += ", ") += for_twin->suite;
  state_ = State::joined;
  if (!begin_plaintext() || !proceed(plaintext_->from_server(now_))) return;
  if (lan_ended_) proceed(plaintext_->server_ended(now_));
}

// No module reads that of tables with `dedup = false`.
bool Far::begin_plaintext() {
  plaintext_.emplace(out_, *server_);
  return wanted_.entry->is_private || proceed(plaintext_->begin(now_, readers_, ends_, wanted_.name, told_));
}

bool Far::proceed(FarPlaintext::Outcome outcome) {
  if (outcome == FarPlaintext::Outcome::goes_on) return true;
  if (server_->leg().is_flooded()) reason_ = reasons::tls_server_floods;
  fail();
  return false;
}

// What the client sent before the near half had the keys.
void Far::read_client() {
  Buffer plain;
  const auto got = client_->leg().read(plain);
  const unsigned long error = got == Leg::Read::failed ? ERR_peek_error() : 0;
  if (auto said = client_->said(plain)) out_.tell(*said);
  const bool goes_on = plain.empty() || proceed(plaintext_->from_client(now_, plain));
  // The alert ech_required follows the client's Finished.
  if (got == Leg::Read::failed) return end_after_refusal(error);
  if (!goes_on) return;
  // It may not answer: the near half has the numbers of the records.
  if (client_->leg().drain().size() > 0) return fail();
  if (got == Leg::Read::closed) proceed(plaintext_->client_ended(now_, FarPlaintext::CloseNotify::came));
}

void Far::from_twin(TimePoint now, Slice bytes) {
  now_ = now;
  const auto message = twin::decode<Message>(bytes.bytes());
  if (message && state_ == State::hello && held_.empty())
    if (const auto* resumed = std::get_if<Resumed>(&*message)) return take_resumed(*resumed);
  if (message && state_ == State::joined && std::holds_alternative<Taken>(*message) && records_.held_bytes() == 0) {
    state_ = State::open;
    client_.reset();
    return;
  }
  const bool is_plain = state_ == State::open || (state_ == State::asking && is_resumed_);
  if (message && is_plain && std::holds_alternative<Truncated>(*message)) {
    truncated_ = true;
    return;
  }
  out_.abort();
}

// The server is verified before it gets anything; where the connection is no longer terminated, the client starts again
// with a full handshake.
void Far::take_resumed(const Resumed& resumed) {
  auto wanted = wanted_by_resumed(resumed, *policy_, site_->remembered, ends_, now_);
  if (!wanted) return fail();
  wanted_ = std::move(*wanted);
  is_resumed_ = true;
  decision_.reset();
  ask_server();
}

void Far::open_resumed() {
  if (!std::ranges::equal(server_->protocol(), Bytes(wanted_.protocols).subspan(wanted_.protocols.empty() ? 0 : 1))) return fail();
  state_ = State::open;
  if (!begin_plaintext()) return;
  detail_ = "TLS for " + wanted_.name + ", decrypted, resumed" + (leaf_ ? ", certificate minted" : "");
  if (!proceed(plaintext_->from_client(now_, std::exchange(held_, {})))) return;
  if (client_ended_early_ && !proceed(plaintext_->client_ended(now_, close_notify()))) return;
  proceed(plaintext_->from_server(now_));
}

void Far::stream_ended(TimePoint now, modules::Ending ending) {
  now_ = now;
  if (ending == modules::Ending::reset) return out_.abort();
  if (state_ == State::hello) splice(reasons::tls_not_understood);
  if (state_ == State::asking && is_resumed_) {
    client_ended_early_ = true;
    return;
  }
  if (state_ == State::asking) splice_again(reasons::tls_not_understood);
  if (state_ == State::aside) return out_.end_lan();
  if (state_ != State::open) return fail();
  proceed(plaintext_->client_ended(now, close_notify()));
}

// --------------------------------------------------------------------------------------------- with the server

void Far::ask_server() {
  state_ = State::asking;
  server_ = std::make_unique<Upstream>(wanted_.entry->to_server.get(), wanted_.name, wanted_.protocols, wanted_.asks_status);
  if (!wanted_.entry->mint) server_->verify_alternative_names();  // Mint::leaf() copies no other names, and says so
  shake_with_server();
}

void Far::shake_with_server() {
  const auto next = server_->shake_hands();
  if (next == Upstream::Next::more || next == Upstream::Next::done) {
    flush(*server_, out_);
    if (next == Upstream::Next::more) return;
    if (!wanted_.entry->mint || mint()) answer();
    return;
  }
  note_refusal(server_->why());
  if (next == Upstream::Next::no_protocol) return splice_again(reasons::tls_server_refused);  // another client may offer one
  refuse(next == Upstream::Next::wants_certificate ? reasons::tls_client_certificate : reasons::tls_server_refused);
}

void Far::answer() {
  if (is_resumed_) return open_resumed();
  state_ = State::answering;
  client_ = std::make_unique<Downstream>(decision_->take_leg(), policy_, *wanted_.entry, *server_,
                                         leaf_.get(), site_->memory);
  decision_.reset();
  client_shook(client_->shake_hands(now_));
  take_records();
}

// Also for a client that has resumed: what it would not be shown today, it does not get.
bool Far::mint() {
  Mint& mint = *wanted_.entry->mint;
  const X509* const certificate = server_->certificate();
  if (!slow_leaf_) {
    slow_leaf_ = mint.begin(now_, policy_, certificate, wanted_.name, site_->memory);
    slow_until_ = now_ + SlowLeaf::kSlowest;
  }
  if (slow_leaf_ && !slow_leaf_->is_done()) {
    if (now_ >= slow_until_) lack_authority("the token has not signed within five seconds");
    return false;
  }
  const auto slow = std::exchange(slow_leaf_, nullptr);
  if (slow && !slow->failure().empty()) return lack_authority(slow->failure()), false;
  auto minted = mint.leaf(now_, certificate, wanted_.name, slow.get());
  leaf_ = std::move(minted.leaf);
  if (leaf_) return true;
  note_refusal(minted.why_not);
  refuse(reasons::tls_not_minted);
  return false;
}

void Far::from_lan(TimePoint now, Slice bytes) {
  now_ = now;
  switch (state_) {
    case State::hello:
      return splice(reasons::tls_not_understood, {std::move(bytes)});  // the server speaks first
    case State::aside:
      return out_.pass_on(std::move(bytes));
    case State::over:
      return;
    default:
      server_->leg().feed(bytes.bytes());
  }
  if (state_ == State::asking && slow_leaf_)
    return server_->leg().unread() > kMostEarlyBytes ? splice_again(reasons::tls_server_floods) : void();
  if (state_ == State::asking) return shake_with_server();
  if (state_ == State::answering) return server_->leg().unread() > kMostEarlyBytes ? fail() : void();
  proceed(plaintext_->from_server(now));
}

void Far::lan_ended(TimePoint now, modules::Ending ending) {
  now_ = now;
  lan_ended_ = true;
  if (ending == modules::Ending::reset) {
    if (state_ == State::asking) return refuse(reasons::tls_server_refused);
    return out_.abort();
  }
  switch (state_) {
    case State::hello:
    case State::aside:
      if (state_ == State::hello) splice(reasons::tls_not_understood);
      return out_.end_stream();
    case State::joined:
    case State::open:
      proceed(plaintext_->server_ended(now));
      return;
    case State::asking:
      return slow_leaf_ ? void() : refuse(reasons::tls_server_refused);
    case State::answering:  // the client learns it after its handshake, as it would from the server itself
    case State::over:
      return;
  }
}

// ------------------------------------------------------------------------------------------------------- ends

void Far::splice(modules::Reason reason, std::vector<Slice> of_server) {
  state_ = State::aside;
  reason_ = reason;
  if (!lan_ended_) out_.step_aside_to_stream(reason, std::move(of_server));
  if (!held_.empty()) out_.to_lan(Slice::copy_of(held_));
  held_ = {};
  records_ = {};
  decision_.reset();
  client_.reset();
  if (twin_aside_) out_.step_aside_to_lan();
}

// The server has seen our ClientHello; the client's own goes to it on a connection of its own.
void Far::splice_again(modules::Reason reason) {
  ERR_clear_error();
  if (is_resumed_) {  // there is no ClientHello
    reason_ = reason;
    return fail();
  }
  client_.reset();  // it refers to the server
  server_.reset();
  slow_leaf_.reset();
  out_.redial();
  lan_ended_ = false;
  splice(reason);
}

void Far::refuse(modules::Reason reason) {
  site_->remembered.note(Remembered::of_server(ends_, wanted_.name), reason, now_ + kServerRemembered);
  splice_again(reason);
}

void Far::fail() {
  ERR_clear_error();
  state_ = State::over;
  client_.reset();
  slow_leaf_.reset();
  out_.abort();
}

void Far::twin_stepped_aside(TimePoint now) {
  now_ = now;
  if (std::exchange(twin_aside_, true)) return;
  if (state_ == State::aside) return out_.step_aside_to_lan();
  if (state_ == State::asking) return splice_again(reasons::tls_not_understood);
  if (state_ != State::hello) return fail();
  splice(reasons::tls_not_understood);
}

}  // namespace longhaul::tls
