// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/far.h"

#include <openssl/err.h>

#include <algorithm>

#include "proxy/modules/tls/reasons.h"
#include "proxy/modules/tls/refusal.h"

namespace longhaul::tls {

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
  if (told.features.modules.value("tls") != 0 || state_ == State::aside || state_ >= State::ending) return;
  if (state_ == State::hello) return splice({});
  if (is_asking()) return splice_again({});  // a resumed one fails
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
    case State::ending:
    case State::over:
      return;
    case State::open:
      proceed(plaintext_->from_client(now, bytes.bytes()));
      return;
    default:
      if (state_ == State::hello || (handshakes_ && !handshakes_->has_answered_client()))
        append(held_, bytes.bytes());
      if (is_resumed_) return held_.size() > kMostResumedBytes ? fail() : void();
      records_.push(bytes.bytes());
      take_records();
      if (of_client_bytes() <= kMostHelloBytes) return;
      if (is_asking()) return splice_again(reasons::tls_not_understood);
      state_ == State::hello ? splice(reasons::tls_not_understood) : fail();
  }
}

// One at a time, so that it is known after which of them the handshake is over.
void Far::take_records() {
  Bytes record;
  while (reads_client()) {
    switch (records_.next(record)) {
      case Records::Next::nothing:
        return;
      case Records::Next::invalid:
        return state_ == State::hello ? splice(reasons::tls_not_understood) : fail();
      case Records::Next::record:
        break;
    }
    if (state_ == State::hello) {
      decide(decision_->take(now_, record));
    } else if (state_ == State::shaking) {
      after(handshakes_->from_client(now_, record));
    } else {
      read_client(record);
    }
  }
}

bool Far::reads_client() const {
  if (state_ == State::shaking) return handshakes_->reads_client();
  return state_ == State::hello || state_ == State::joined;
}

void Far::decide(Decision::Next next) {
  if (next == Decision::Next::more) return;
  detail_ = decision_->detail();
  if (next == Decision::Next::passes) return splice(decision_->reason());
  wanted_ = decision_->take_wanted();
  shake_hands(decision_->take_leg());
}

// What the client sent before the near half had the keys.
void Far::read_client(Bytes record) {
  client_->leg().feed(record);
  Buffer plain;
  const auto got = client_->leg().read(plain);
  const unsigned long error = got == Leg::Read::failed ? ERR_peek_error() : 0;
  if (client_->gave_early_keys()) {
    if (!plain.empty()) return fail();  // the near half reads the client from its first record on
  } else if (auto said = client_->said(plain)) {
    out_.tell(*said);
  }
  const bool goes_on = plain.empty() || proceed(plaintext_->from_client(now_, plain));
  if (got == Leg::Read::failed) {
    // The alert ech_required follows the client's Finished.
    note_client_refusal(site_->remembered, ends_, wanted_.name, now_, error);
    const auto alert = client_->leg().fatal_alert();
    alert&& goes_on ? void(proceed(plaintext_->client_failed(*alert))) : fail();
    return;
  }
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
  const bool is_plain = state_ == State::open || (state_ == State::shaking && is_resumed_);
  if (message && is_plain && std::holds_alternative<Truncated>(*message)) {
    truncated_ = true;
    return;
  }
  const auto* const alerted = message && is_plain ? std::get_if<Alerted>(&*message) : nullptr;
  // Never a proper end, and once.
  if (!alerted || alerted->description == SSL_AD_CLOSE_NOTIFY || client_alert_) return out_.abort();
  client_alert_ = alerted->description;
  note_client_refusal(site_->remembered, ends_, wanted_.name, now_,
                      SSL_AD_REASON_OFFSET + alerted->description);
}

// The server is verified before it gets anything; where the connection is no longer terminated, the client starts again
// with a full handshake.
void Far::take_resumed(const Resumed& resumed) {
  auto wanted = wanted_by_resumed(resumed, *policy_, site_->remembered, ends_, now_);
  if (!wanted) return fail();
  wanted_ = std::move(*wanted);
  is_resumed_ = true;
  shake_hands(nullptr);
}

void Far::stream_ended(TimePoint now, modules::Ending ending) {
  now_ = now;
  if (ending == modules::Ending::reset) return out_.abort();
  if (state_ == State::hello) splice(reasons::tls_not_understood);
  if (is_asking() && is_resumed_) {
    client_ended_early_ = true;
    return;
  }
  if (is_asking()) splice_again(reasons::tls_not_understood);
  switch (state_) {
    case State::shaking:
      let_end();
      [[fallthrough]];
    case State::aside:
    case State::ending:
      return out_.end_lan();
    case State::joined:
      truncated_ = true;  // after close_notify this has no effect
      [[fallthrough]];
    case State::open:
      proceed(end_of_client());
      return;
    default:
      return fail();
  }
}

FarPlaintext::Outcome Far::end_of_client() {
  if (client_alert_ && plaintext_->client_failed(*client_alert_) == FarPlaintext::Outcome::failed)
    return FarPlaintext::Outcome::failed;
  return plaintext_->client_ended(
      now_, truncated_ ? FarPlaintext::CloseNotify::missing : FarPlaintext::CloseNotify::came);
}

// ------------------------------------------------------------------------------------------ handshakes

void Far::shake_hands(std::unique_ptr<Leg> hello) {
  decision_.reset();
  state_ = State::shaking;
  handshakes_.emplace(*site_, policy_, ends_, wanted_, std::move(hello), out_);
  after(handshakes_->begin(now_));
}

void Far::on_timeout(TimePoint now) {
  now_ = now;
  if (!handshakes_) return;
  after(handshakes_->on_timeout(now));
  take_records();
}

void Far::after(Handshakes::Next next) {
  if (handshakes_->has_answered_client()) held_ = {};
  if (next == Handshakes::Next::more) return;
  reason_ = handshakes_->reason();
  detail_ = handshakes_->detail();
  if (next == Handshakes::Next::passes) return splice_again(reason_);
  if (next == Handshakes::Next::ends) return let_end();
  next == Handshakes::Next::done ? join() : fail();
}

void Far::let_end() {
  ERR_clear_error();
  state_ = State::ending;
  handshakes_.reset();
  records_ = {};
  if (lan_ended_) out_.end_stream();
}

void Far::join() {
  server_ = handshakes_->take_server();
  client_ = handshakes_->take_client();
  handshakes_.reset();
  state_ = is_resumed_ ? State::open : State::joined;
  plaintext_.emplace(out_, *server_);
  // No module reads the plaintext of tables with `dedup = false`.
  if (!is_private() && !proceed(plaintext_->begin(now_, readers_, ends_, wanted_.name, told_))) return;
  if (is_resumed_ && !proceed(plaintext_->from_client(now_, std::exchange(held_, {})))) return;
  if (client_ended_early_ && !proceed(end_of_client())) return;
  if (proceed(plaintext_->from_server(now_)) && lan_ended_) proceed(plaintext_->server_ended(now_));
}

bool Far::proceed(FarPlaintext::Outcome outcome) {
  if (outcome == FarPlaintext::Outcome::goes_on) return true;
  if (server_->leg().is_flooded()) reason_ = reasons::tls_server_floods;
  fail();
  return false;
}

// ------------------------------------------------------------------------------------- from the server

void Far::from_lan(TimePoint now, Slice bytes) {
  now_ = now;
  switch (state_) {
    case State::hello:
      return splice(reasons::tls_not_understood, {std::move(bytes)});  // the server speaks first
    case State::aside:
      return out_.pass_on(std::move(bytes));
    case State::ending:
    case State::over:
      return;
    case State::shaking:
      after(handshakes_->from_server(now, bytes.bytes()));
      return take_records();
    case State::joined:
    case State::open:
      server_->leg().feed(bytes.bytes());
      proceed(plaintext_->from_server(now));
  }
}

void Far::lan_ended(TimePoint now, modules::Ending ending) {
  now_ = now;
  lan_ended_ = true;
  if (state_ == State::shaking) return after(handshakes_->server_ended(now, ending));
  // After a fatal alert of the server, the stream has ended, and that still arrives.
  if (ending == modules::Ending::reset) return out_.abort();
  if (state_ == State::hello) splice(reasons::tls_not_understood);
  if (state_ == State::aside || state_ == State::ending) return out_.end_stream();
  if (state_ == State::joined || state_ == State::open) proceed(plaintext_->server_ended(now));
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
  if (twin_aside_) out_.step_aside_to_lan();
}

// The server has seen our ClientHello; the client's own goes to it on a connection of its own.
void Far::splice_again(modules::Reason reason) {
  ERR_clear_error();
  if (is_resumed_) {  // there is no ClientHello
    reason_ = reason;
    return fail();
  }
  handshakes_.reset();
  out_.redial();
  lan_ended_ = false;
  splice(reason);
}

void Far::fail() {
  ERR_clear_error();
  state_ = State::over;
  handshakes_.reset();
  client_.reset();
  out_.abort();
}

void Far::twin_stepped_aside(TimePoint now) {
  now_ = now;
  if (std::exchange(twin_aside_, true)) return;
  if (state_ == State::aside) return out_.step_aside_to_lan();
  if (is_asking()) return splice_again(reasons::tls_not_understood);
  if (state_ != State::hello) return fail();
  splice(reasons::tls_not_understood);
}

}  // namespace longhaul::tls
