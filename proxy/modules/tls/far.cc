// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/far.h"

#include <openssl/err.h>

#include <algorithm>

#include "proxy/modules/tls/client_hello.h"
#include "proxy/modules/tls/reasons.h"

namespace longhaul::tls {
namespace {

constexpr modules::Duration kServerRemembered = std::chrono::minutes(10), kClientRemembered = std::chrono::hours(24);
constexpr modules::Duration kKeyRemembered = std::chrono::minutes(1);

// An alert by which a client says that it does not want this certificate; any other failure is not
// remembered.
bool refuses_certificate(unsigned long error) {
  switch (ERR_GET_REASON(error)) {
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return true;
    default:
      return false;
  }
}

}  // namespace

Far::Far(const modules::Ends& ends, const modules::Address& dialled, std::shared_ptr<Site> site, modules::PlaintextReaders readers)
    : readers_(std::move(readers)), ends_{.client = ends.client, .server = dialled, .server_port = ends.server_port},
      site_(std::move(site)), policy_(site_->policy) {
  if (!policy_ || !policy_->lists(ends_.server)) {
    splice({});
    return;
  }
  client_ = std::make_unique<Leg>(site_->undecided.get(), static_cast<LegUser&>(*this));
  SSL_set_accept_state(client_->ssl());
}

void Far::on_surroundings(TimePoint now, const modules::Surroundings& told) {
  now_ = now;
  told_ = told;
  if (reader_) {
    reader_->on_surroundings(now, told);
    read_outputs();
  }
  if (told.features.modules.value("tls") != 0 || state_ == State::aside || state_ == State::over) return;
  if (state_ == State::hello) return splice({});
  if (state_ == State::asking) return splice_again({});  // a resumed one fails
  fail();  // as in the near half
}

void Far::give_up_memory(TimePoint now) {
  now_ = now;
  if (state_ == State::hello) return splice(modules::reasons::memory_limit);
  if (!reader_ || state_ == State::over) return;
  reader_->give_up_memory(now);
  read_outputs();
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
      return to_server(bytes.bytes());
    default:
      if (state_ <= State::asking || (slow_ && !held_.empty())) append(held_, bytes.bytes());
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
  while (!slow_ && (state_ == State::hello || state_ == State::answering || state_ == State::joined)) {
    switch (records_.next(record)) {
      case Records::Next::nothing:
        return;
      case Records::Next::invalid:
        return state_ == State::hello ? splice(reasons::tls_not_understood) : fail();
      case Records::Next::record:
        break;
    }
    ++client_records_;
    client_->feed(record);
    if (state_ == State::hello)
      decide(client_->shake_hands());
    else if (state_ == State::answering)
      shake_with_client();
    else
      read_client();
  }
}

void Far::decide(int result) {
  if (result == SSL_ERROR_WANT_READ) return;
  if (result != SSL_ERROR_WANT_CLIENT_HELLO_CB || passes_) {
    ERR_clear_error();
    return splice(passes_.value_or(reasons::tls_not_understood));
  }
  ask_server();
}

int Far::on_client_hello(SSL* ssl) {
  if (entry_) {  // the second time: the server has answered
    SSL_set_SSL_CTX(ssl, entry_->to_client.get());
    return leaf_ && SSL_use_certificate(ssl, leaf_.get()) != 1 ? SSL_CLIENT_HELLO_ERROR : SSL_CLIENT_HELLO_SUCCESS;
  }
  const auto pass = [&](modules::Reason reason) {
    passes_ = reason;
    return SSL_CLIENT_HELLO_RETRY;
  };
  name_ = hello_name(ssl);
  if (name_.empty()) return pass(reasons::tls_no_name);
  const Entry* const entry = policy_->find(ends_.server, name_, ends_.client);
  if (!entry) return pass(reasons::tls_not_listed);
  if (!hello_offers_1_3(ssl) && !hello_offers_1_2(ssl, entry->public_key()))
    return pass(reasons::tls_version);
  for (const bool of_client : {true, false})
    if (const auto why = site_->remembered.why(key(of_client), now_)) return pass(*why);
  if (entry->mint)
    if (const std::string why = entry->mint->why_not(); !why.empty()) return note_refusal(why), pass(reasons::tls_not_minted);
  const auto protocols = hello_protocols(ssl);
  if (!protocols) return pass(reasons::tls_not_understood);
  append(protocols_, *protocols);
  asks_status_ = !hello_extension(ssl, TLSEXT_TYPE_status_request).empty();
  entry_ = entry;
  return SSL_CLIENT_HELLO_RETRY;
}

Remembered::Key Far::key(bool of_client) const {
  return {.client = of_client ? ends_.client : modules::Address{}, .server = ends_.server, .port = ends_.server_port,
          .name = name_};
}

void Far::shake_with_client() {
  if (entry_->held) return shake_slowly();
  const int result = client_->shake_hands();
  client_shook(result, ERR_peek_error());
}

void Far::shake_slowly() {
  const Bytes protocol = server_->protocol();
  const Bytes status = server_->status_of(SSL_CTX_get0_certificate(entry_->to_client.get()));
  slow_ = std::make_shared<SlowAnswer>(policy_, *entry_, std::move(client_), std::move(secrets_),
                                       SlowAnswer::Said{.protocol = {protocol.begin(), protocol.end()},
                                                        .status = {status.begin(), status.end()}});
  slow_until_ = now_ + kSlowest;
  if (!slow_->begin()) return lack_key("too many handshakes wait for it");
  if (slow_->is_done()) take_answer();
}

void Far::on_timeout(TimePoint now) {
  now_ = now;
  if (!slow_) return;
  if (slow_->is_done()) {
    take_answer();
    return take_records();
  }
  if (now >= slow_until_) lack_key("it has not signed within five seconds");
}

void Far::take_answer() {
  const auto answer = std::exchange(slow_, nullptr);
  client_ = answer->take_leg(*this);
  if (!answer->failure().empty()) return lack_key(answer->failure());
  secrets_ = answer->take_secrets();
  for (const SessionBytes& session : answer->take_sessions()) keep_session(session);
  client_shook(answer->result(), answer->error());
}

// The client has heard nothing, unless it had been asked for another key share.
void Far::lack_key(const std::string& why) {
  slow_.reset();
  note_refusal("its key is not available: " + why);
  site_->remembered.note(key(false), reasons::tls_key_unavailable, now_ + kKeyRemembered);
  if (!held_.empty()) return splice_again(reasons::tls_key_unavailable);
  reason_ = reasons::tls_key_unavailable;
  fail();
}

void Far::client_shook(int result, unsigned long error) {
  const Slice bytes = client_->drain();
  // It has no curve or signature in common with our certificate, and has not heard our alert.
  const bool is_over = result != SSL_ERROR_NONE && result != SSL_ERROR_WANT_READ;
  if (is_over && !held_.empty()) return splice_again(reasons::tls_version);
  held_ = {};
  if (bytes.size() > 0) out_.pass_on(bytes);
  if (result == SSL_ERROR_WANT_READ) return;
  if (result == SSL_ERROR_NONE) return give_keys(bytes.bytes());
  if (refuses_certificate(error))
    site_->remembered.note(key(true), reasons::tls_client_refused, now_ + kClientRemembered);
  fail();
}

void Far::give_keys(Bytes last_said) {
  const auto traffic = secrets_.take(client_->ssl(), last_said);
  if (!traffic) return fail();
  out_.tell(Keys{.suite = traffic->suite, .client_secret = Slice::copy_of(traffic->client),
                 .server_secret = Slice::copy_of(traffic->server), .client_records = client_records_,
                 .server_records = traffic->server_records, .name = Slice::copy_of(std::as_bytes(std::span(name_))),
                 .is_private = entry_->is_private});
  for (const Message& session : std::exchange(sessions_, {})) out_.tell(session);
  detail_ = (traffic->is_1_2 ? "TLS 1.2 for " : "TLS 1.3 for ") + name_ + ", decrypted" + (leaf_ ? ", certificate minted" : "");
  if (const auto* suite = SSL_get_cipher_name(client_->ssl())) (detail_ += ", ") += suite;
  state_ = State::joined;
  begin_to_read();
  read_server();
}

// What the client sent before the near half had the keys.
void Far::read_client() {
  Buffer plain;
  const auto got = client_->read(plain);
  tell_said(plain);
  if (!plain.empty()) to_server(plain);
  // It may not answer: the near half has the numbers of the records.
  if (got == Leg::Read::failed || client_->drain().size() > 0) return fail();
  if (got == Leg::Read::closed) end_server(true);
}

void Far::tell_said(Bytes plain) {
  if (said_bytes_ > Said::kMostBytes) return;
  said_bytes_ += plain.size();
  const bool is_known = said_bytes_ <= Said::kMostBytes;
  out_.tell(Said{.is_known = is_known, .bytes = is_known ? Slice::copy_of(plain) : Slice()});
}

void Far::keep_session(const SessionBytes& made) {
  if (made.bytes.empty() || sessions_.size() == Session::kMost) return;
  sessions_.push_back(Session{.id = Slice::copy_of(std::as_bytes(std::span(made.id))), .bytes = Slice::copy_of(made.bytes),
                              .entry = Slice::copy_of(std::as_bytes(std::span(entry_->stamp)))});
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

// The near half vouches for the client. Whether this connection is still terminated is decided here, and the server is
// verified, before it gets anything; where it is not, the client starts again with a full handshake.
void Far::take_resumed(const Resumed& resumed) {
  const auto text = [](const Slice& slice) {
    return std::string_view(reinterpret_cast<const char*>(slice.bytes().data()), slice.size());
  };
  name_ = plain_name(text(resumed.name));
  const Entry* const entry = policy_->find(ends_.server, name_, ends_.client);
  const bool fits = !name_.empty() && entry && entry->stamp == text(resumed.entry) && resumed.protocol.size() < 256 &&
                    !site_->remembered.why(key(false), now_);
  if (!fits) return fail();
  entry_ = entry;
  is_resumed_ = true;
  if (!resumed.protocol.empty()) {
    protocols_.push_back(std::byte(resumed.protocol.size()));
    append(protocols_, resumed.protocol.bytes());
  }
  client_.reset();
  ask_server();
}

void Far::open_resumed() {
  if (!std::ranges::equal(server_->protocol(), Bytes(protocols_).subspan(protocols_.empty() ? 0 : 1))) return fail();
  state_ = State::open;
  begin_to_read();
  detail_ = "TLS for " + name_ + ", decrypted, resumed" + (leaf_ ? ", certificate minted" : "");
  to_server(std::exchange(held_, {}));
  if (client_ended_early_) end_server(!truncated_);
  if (state_ == State::open) read_server();
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
  end_server(!truncated_);
}

// --------------------------------------------------------------------------------------------- with the server

void Far::ask_server() {
  state_ = State::asking;
  server_ = std::make_unique<Upstream>(entry_->to_server.get(), name_, protocols_, asks_status_);
  if (!entry_->mint) server_->verify_alternative_names();  // Mint::leaf() copies no other names, and says so
  shake_with_server();
}

void Far::shake_with_server() {
  const auto next = server_->shake_hands();
  if (next == Upstream::Next::more || next == Upstream::Next::done) {
    say_to_server();
    if (next == Upstream::Next::more) return;
    if (entry_->mint && !mint()) return;
    if (is_resumed_) return open_resumed();
    state_ = State::answering;
    shake_with_client();
    return take_records();
  }
  note_refusal(server_->why());
  if (next == Upstream::Next::no_protocol) return splice_again(reasons::tls_server_refused);  // another client may offer one
  refuse(next == Upstream::Next::wants_certificate ? reasons::tls_client_certificate : reasons::tls_server_refused);
}

// Also for a client that has resumed: what it would not be shown today, it does not get.
bool Far::mint() {
  auto minted = entry_->mint->leaf(now_, server_->certificate(), name_);
  leaf_ = std::move(minted.leaf);
  if (leaf_) return true;
  note_refusal(minted.why_not);
  refuse(reasons::tls_not_minted);
  return false;
}

void Far::note_refusal(const std::string& why) { detail_ = "TLS for " + name_ + " not decrypted: " + why; }

void Far::say_to_server() {
  if (Slice bytes = server_->leg().drain(); bytes.size() > 0) out_.to_lan(std::move(bytes));
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
  if (state_ == State::asking) return shake_with_server();
  if (state_ == State::answering) return server_->leg().unread() > kMostEarlyBytes ? fail() : void();
  read_server();
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
      if (reader_) {
        if (std::exchange(server_done_, true)) return;
        server_was_cut_ = true;
        reader_->lan_ended(now, modules::Ending::closed);
        return read_outputs();
      }
      // After its close_notify, this is dropped.
      out_.tell(Truncated{});
      return out_.end_stream();
    case State::asking:
      return refuse(reasons::tls_server_refused);
    default:
      return fail();
  }
}

// ------------------------------------------------------------------------------------------------------- ends

void Far::splice(modules::Reason reason, std::vector<Slice> of_server) {
  state_ = State::aside;
  reason_ = reason;
  slow_.reset();
  if (!lan_ended_) out_.step_aside_to_stream(reason, std::move(of_server));
  if (!held_.empty()) out_.to_lan(Slice::copy_of(held_));
  held_ = {};
  records_ = {};
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
  server_.reset();
  out_.redial();
  lan_ended_ = false;
  splice(reason);
}

void Far::refuse(modules::Reason reason) {
  site_->remembered.note(key(false), reason, now_ + kServerRemembered);
  splice_again(reason);
}

void Far::fail() {
  ERR_clear_error();
  state_ = State::over;
  slow_.reset();
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
