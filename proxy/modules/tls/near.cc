// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/near.h"

#include <algorithm>

#include "proxy/modules/tls/policy.h"
#include "proxy/modules/tls/reasons.h"

namespace longhaul::tls {
namespace {

// One whole message NewSessionTicket: the only one that a peer may have sent to the client.
bool is_ticket(Bytes message) {
  constexpr std::size_t kHead = 4;
  if (message.size() < kHead || message.size() > Session::kMostTicketBytes || message[0] != std::byte{4})
    return false;
  std::size_t size = 0;
  for (const std::byte digit : message.subspan(1, 3)) size = size << 8 | std::to_integer<std::size_t>(digit);
  return size == message.size() - kHead;
}

}  // namespace

void Near::on_surroundings(TimePoint now, const modules::Surroundings& told) {
  told_ = told;
  const bool is_on = told.features.modules.value("tls") != 0;
  if (state_ == State::open && is_on) {
    plaintext_->on_surroundings(now, told);
    return read_plaintext();
  }
  if (is_on && state_ == State::handshake && passed_ == 0) begin_to_resume();
  if (is_on || state_ == State::over || state_ == State::aside) return;
  if (state_ == State::handshake) return step_aside({});
  // Nobody else can go on with these records: the client connects again, and that connection passes.
  state_ = State::over;
  out_.abort();
}

void Near::from_lan(TimePoint now, Slice bytes) {
  switch (state_) {
    case State::handshake:
      records_.push(bytes.bytes());
      return pass_records(now);
    case State::open:
      if (client_closed_) return;  // nothing follows close_notify (RFC 8446, section 6.1)
      records_.push(bytes.bytes());
      return open_records(now);
    case State::resuming:
      records_.push(bytes.bytes());
      return resume_records(now);
    case State::aside:
      return out_.pass_on(std::move(bytes));
    case State::over:
      return;
  }
}

// Only whole ones, so that the place where the client's bytes become plain is between two of them.
void Near::pass_records(TimePoint now) {
  Bytes record;
  while (state_ == State::handshake) switch (records_.next(record)) {
      case Records::Next::record:
        resumer_ ? try_to_resume(now, record) : pass(record);
        continue;
      case Records::Next::nothing:
        if (tried_.size() + records_.held_bytes() > kMostHelloBytes) pass_tried();
        return;
      case Records::Next::invalid:
        return step_aside(reasons::tls_not_understood);
    }
  if (state_ == State::resuming) resume_records(now);
}

void Near::pass(Bytes record) {
  ++passed_;
  out_.pass_on(Slice::copy_of(record));
}

void Near::step_aside(modules::Reason reason) {
  if (state_ != State::handshake || lan_ended_) return;
  pass_tried();
  state_ = State::aside;
  reason_ = reason;
  out_.step_aside_to_stream(reason, {records_.take_rest()});
}

// ------------------------------------------------------------------------------------------------- resumption

// Known before the first byte: without a session for this server, nothing is held back.
void Near::begin_to_resume() {
  place_ = {.far = told_.twin_session, .server = ends_.server, .port = ends_.server_port};
  if (!resumer_ && site_->sessions.has(place_)) resumer_.emplace(site_->resuming.get(), site_->sessions, place_);
}

void Near::try_to_resume(TimePoint now, Bytes record) {
  append(tried_, record);
  const auto next = resumer_->take(now, record);
  if (next == Resumer::Next::more) return;
  if (next != Resumer::Next::begun) return pass_tried();
  tried_ = {};
  state_ = State::resuming;
  name_ = resumer_->name();
  is_private_ = resumer_->is_private();
  out_.to_lan(resumer_->drain());
  out_.tell(Resumed{.name = Slice::copy_of(std::as_bytes(std::span(name_))),
                    .entry = Slice::copy_of(std::as_bytes(std::span(resumer_->entry()))),
                    .protocol = Slice::copy_of(resumer_->protocol())});
}

// It is a client for the far half.
void Near::pass_tried() {
  resumer_.reset();
  Records tried;
  tried.push(std::exchange(tried_, {}));
  for (Bytes record; tried.next(record) == Records::Next::record;) pass(record);
}

void Near::resume_records(TimePoint now) {
  Bytes record;
  while (state_ == State::resuming) {
    const auto got = records_.next(record);
    if (got == Records::Next::nothing) return;
    const auto next = got == Records::Next::invalid ? Resumer::Next::failed : resumer_->take(now, record);
    if (Slice said = resumer_->drain(); said.size() > 0) out_.to_lan(std::move(said));
    if (next == Resumer::Next::more) continue;
    if (next != Resumer::Next::done) {
      state_ = State::over;
      return out_.abort();
    }
    const Traffic& traffic = resumer_->traffic();
    client_.emplace(out_, Layer::Secrets{.suite = traffic.suite, .client = traffic.client, .server = traffic.server,
                                         .server_number = traffic.server_records});
    resumer_.reset();
    is_resumed_ = is_taken_ = true;
    open(now, name_);
    if (!early_.empty()) from_stream(now, Slice::copy_of(std::exchange(early_, {})));
    open_records(now);
  }
}

void Near::take_session(TimePoint now, const Session& session) {
  if (++sessions_ > Session::kMost || session.bytes.size() > Sessions::kMostBytes || session.id.size() > 32 ||
      session.entry.size() > 64)
    return out_.abort();
  const auto text = [](const Slice& slice) {
    return std::string(reinterpret_cast<const char*>(slice.bytes().data()), slice.size());
  };
  SecretBytes bytes(session.bytes.size());
  std::ranges::copy(session.bytes.bytes(), bytes.data());
  if (!session.ticket.empty()) {
    if (client_->is_1_2() || !is_ticket(session.ticket.bytes())) return out_.abort();
    client_->send_ticket(session.ticket.bytes());
  }
  site_->sessions.put(place_, name_, text(session.id), {std::move(bytes), text(session.entry), is_private_, now + Sessions::kLifetime});
}

// Whatever the far half knows now: the client's next connection asks it.
void Near::forget_sessions() {
  if ((state_ == State::resuming || is_resumed_) && !is_answered_) site_->sessions.forget(place_, name_);
}

// ----------------------------------------------------------------------------------------------------- open

void Near::from_twin(TimePoint now, Slice bytes) {
  const auto message = twin::decode<Message>(bytes.bytes());
  if (of_reader_.is_pending()) return out_.abort();
  if (message && state_ == State::aside) return;  // said before it knew
  if (message && state_ == State::handshake)
    if (const auto* keys = std::get_if<Keys>(&*message)) return take_keys(now, *keys);
  if (message && state_ == State::open && unheard_ > 0)
    if (const auto* said = std::get_if<Said>(&*message)) return take_said(now, *said);
  if (message && state_ == State::open && !is_resumed_)
    if (const auto* session = std::get_if<Session>(&*message)) return take_session(now, *session);
  if (message && state_ == State::open)
    if (const auto* of_reader = std::get_if<OfReader>(&*message); of_reader && of_reader->bytes > 0 && of_reader->bytes <= OfReader::kMostBytes)
      return of_reader_.begin(*message, of_reader->bytes);
  const bool is_plain = state_ == State::open || state_ == State::resuming;
  if (message && is_plain && std::holds_alternative<Truncated>(*message)) {
    truncated_ = true;
    return;
  }
  if (message && is_plain)
    if (const auto* alerted = std::get_if<Alerted>(&*message)) return take_alert(alerted->description);
  out_.abort();
}

// It stands for the end that follows.
void Near::take_alert(std::uint8_t description) {
  if (description == kCloseNotify || description == kUserCanceled || alert_) return out_.abort();
  forget_sessions();
  alert_ = description;
}

void Near::take_keys(TimePoint now, const Keys& keys) {
  const Layer::Secrets secrets{.suite = keys.suite,
                               .client = keys.client_secret.bytes(),
                               .server = keys.server_secret.bytes(),
                               .client_number = keys.is_early() ? 0 : passed_ - keys.client_records,
                               .server_number = keys.server_records};
  const bool has_right_numbers = keys.is_early() ? RecordSuite::of(keys.suite) && keys.client_records == 0 &&
                                                       keys.server_records == 0 &&
                                                       keys.flight.size() <= Keys::kMostFlightBytes
                                                 : keys.client_records <= passed_;
  const bool fits = Layer::fits(secrets) && has_right_numbers;
  const std::string_view named(reinterpret_cast<const char*>(keys.name.bytes().data()), keys.name.size());
  const std::string name = plain_name(named);
  // People see the name, and it is part of the cache's keys: only as the far half of this program writes it.
  if (!fits || name.empty() || name != named) return out_.abort();
  is_private_ = keys.is_private;
  unheard_ = secrets.client_number;
  client_.emplace(out_, secrets);
  resumer_.reset();
  is_taken_ = !keys.is_early();
  if (is_taken_) out_.tell(Taken{});
  if (keys.is_early()) out_.to_lan(keys.flight);
  open(now, name);
  if (!lan_ended_) return open_records(now);
  client_closed_ = true;  // its direction ended with the records that were passed on
  plaintext_->client_closed(now);
  read_plaintext();
}

void Near::open(TimePoint now, const std::string& name) {
  name_ = name;
  detail_ = (client_->is_1_2() ? "TLS 1.2 for " : "TLS 1.3 for ") + name + (is_resumed_ ? ", decrypted, resumed" : ", decrypted");
  // What others store of it would be a dictionary, too.
  plaintext_.emplace(is_private_ ? modules::PlaintextReaders() : std::move(readers_), ends_, name);
  plaintext_->on_surroundings(now, told_);
  plaintext_->expect_server_has(unheard_);
  state_ = State::open;
}

void Near::take_said(TimePoint now, const Said& said) {
  if (said.bytes.size() > Said::kMostBytes) return out_.abort();
  --unheard_;
  said.is_known ? plaintext_->server_has(now, said.bytes) : plaintext_->client_is_unknown(now);
  read_plaintext();
}

// ------------------------------------------------------------------------------------------- from the client

// The client's Finished is sealed with another key: which record is the first of ours, only trying shows.
void Near::pass_handshake() {
  Bytes record;
  while (!is_taken_) switch (records_.next(record)) {
      case Records::Next::nothing:
        return;
      case Records::Next::record:
        if (client_->is_next(record)) {
          records_.put_back(record);
          is_taken_ = true;
          return out_.tell(Taken{});
        }
        if (++handshake_records_ <= kMostHandshakeRecords) {
          pass(record);
          continue;
        }
        [[fallthrough]];
      case Records::Next::invalid:
        state_ = State::over;
        return out_.abort();
    }
}

void Near::open_records(TimePoint now) {
  if (client_closed_) return;  // nothing follows close_notify (RFC 8446, section 6.1)
  pass_handshake();
  if (!is_taken_ || state_ != State::open) return;
  Buffer plain;
  const auto next = client_->read(records_, plain);
  if (next == SealedClient::Next::failed) {
    state_ = State::over;
    return out_.abort();
  }
  client_closed_ = next != SealedClient::Next::more;
  if (!plain.empty()) plaintext_->from_client(now, Slice::copy_of(plain));
  if (client_closed_) plaintext_->client_closed(now);
  read_plaintext();
}

// What becomes of it, in the order in which it was decided.
void Near::read_plaintext() {
  while (auto output = plaintext_->poll_output()) {
    if (auto* client = std::get_if<modules::ToStream>(&*output)) {
      // Requests' headers have passwords and cookies in them.
      out_.pass_on(std::move(client->bytes), !client->is_content);
    } else if (auto* server = std::get_if<modules::ToLan>(&*output)) {
      client_->send(std::move(server->bytes));
    } else if (std::holds_alternative<modules::EndStream>(*output)) {
      end_stream();
    } else if (std::holds_alternative<modules::EndLan>(*output)) {
      end_client();
    } else {
      client_->flush();
      state_ = State::over;
      return out_.abort();
    }
  }
  client_->flush();
}

// A client that has failed reads nothing more.
void Near::end_client() {
  client_->flush();
  if (!client_->alert_heard()) {
    if (alert_)
      client_->alert(*alert_);
    else if (!truncated_)
      client_->close();
  }
  out_.end_lan();
}

void Near::end_stream() {
  if (const auto alert = client_->alert_heard()) out_.tell(Alerted{.description = *alert});
  out_.end_stream();
  stream_is_over_ = true;
  if (client_was_reset_) out_.abort();
}

void Near::lan_ended(TimePoint now, modules::Ending ending) {
  lan_ended_ = true;
  // The server gets the alert first.
  client_was_reset_ = ending == modules::Ending::reset;
  if (client_was_reset_ && state_ == State::open && client_->alert_heard() && !stream_is_over_) return;
  if (ending == modules::Ending::reset || state_ == State::over) return out_.abort();
  if (state_ == State::open) {
    if (std::exchange(client_closed_, true)) return;
    if (is_taken_) {
      out_.tell(Truncated{});
    } else if (Slice rest = records_.take_rest(); rest.size() > 0) {
      out_.pass_on(std::move(rest));
    }
    plaintext_->client_closed(now);
    return read_plaintext();
  }
  if (state_ == State::resuming) return out_.abort();
  pass_tried();
  if (Slice rest = records_.take_rest(); rest.size() > 0) out_.pass_on(std::move(rest));
  out_.end_stream();
}

// --------------------------------------------------------------------------------------------- to the client

void Near::from_stream(TimePoint now, Slice bytes) {
  if (state_ == State::over) return;
  if (state_ == State::resuming) {
    append(early_, bytes.bytes());
    return early_.size() > kMostEarlyBytes ? out_.abort() : void();
  }
  if (state_ != State::open) return out_.to_lan(std::move(bytes));
  is_answered_ = true;
  if (of_reader_.is_pending())
    if (auto whole = of_reader_.take(bytes)) plaintext_->from_twin(now, std::move(whole->bytes));
  if (!bytes.empty()) plaintext_->from_server(now, std::move(bytes));
  read_plaintext();
}

void Near::stream_ended(TimePoint now, modules::Ending ending) {
  // The far half no longer reads the client, whose connection ends with the alert.
  const bool is_told = alert_ && std::exchange(server_ended_, true);
  if (is_told && state_ == State::open) return;
  if (ending == modules::Ending::reset) forget_sessions();
  if (ending == modules::Ending::reset || state_ == State::resuming) return out_.abort();
  if (state_ != State::open) return out_.end_lan();
  is_answered_ = true;
  plaintext_->server_closed(now);
  read_plaintext();
}

void Near::on_timeout(TimePoint now) {
  if (state_ != State::open) return;
  plaintext_->on_timeout(now);
  read_plaintext();
}

void Near::on_room(TimePoint now, const modules::Room& room) {
  if (state_ != State::open) return;
  plaintext_->on_room(now, room);
  read_plaintext();
}

void Near::give_up_memory(TimePoint now) {
  if (state_ == State::resuming) return out_.abort();
  if (state_ != State::open) return step_aside(modules::reasons::memory_limit);
  plaintext_->give_up_memory(now);
  read_plaintext();
}

void Near::twin_stepped_aside(TimePoint) {
  forget_sessions();
  if (state_ == State::open || state_ == State::resuming) return out_.abort();
  step_aside({});
  out_.step_aside_to_lan();
}

}  // namespace longhaul::tls
