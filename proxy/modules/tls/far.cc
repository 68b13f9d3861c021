// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/far.h"

#include <openssl/err.h>

#include <algorithm>

#include "codecs/byte_reader.h"
#include "crypto/tls_records.h"
#include "proxy/modules/tls/reasons.h"

namespace longhaul::tls {
namespace {

constexpr modules::Duration kServerRemembered = std::chrono::minutes(10), kClientRemembered = std::chrono::hours(24);

Bytes extension(SSL* ssl, unsigned type) {
  const unsigned char* data = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, type, &data, &size) != 1) return {};
  return std::as_bytes(std::span(data, size));
}

// RFC 6066, section 3: a list, of which only its one host name counts.
std::string name_in(Bytes extension) {
  ByteReader in(extension);
  const auto list = in.fixed16();
  const auto type = in.u8();
  const auto size = in.fixed16();
  if (!list || !type || !size || *type != 0 || in.remaining() != *size || *list != *size + 3u) return {};
  const Bytes name = extension.last(*size);
  return plain_name({reinterpret_cast<const char*>(name.data()), name.size()});
}

// RFC 8446, section 4.2.1.
bool offers_1_3(Bytes versions) {
  for (std::size_t at = 1; at + 1 < versions.size(); at += 2)
    if (versions[at] == std::byte{3} && versions[at + 1] == std::byte{4}) return true;
  return false;
}

// An alert by which a client says that it does not want this certificate; any other failure is not remembered.
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

Far::Far(const modules::Ends& ends, const modules::Address& dialled, std::shared_ptr<Site> site)
    : ends_{.client = ends.client, .server = dialled, .server_port = ends.server_port},
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
  if (told.features.modules.value("tls") != 0 || state_ == State::aside || state_ == State::over) return;
  if (state_ == State::hello) return splice({});
  fail();  // as in the near half
}

void Far::give_up_memory(TimePoint now) {
  now_ = now;
  if (state_ == State::hello) splice(modules::reasons::memory_limit);
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
      if (state_ == State::hello) append(held_, bytes.bytes());
      records_.push(bytes.bytes());
      take_records();
      if (held_bytes() > kMostHelloBytes) state_ == State::hello ? splice(reasons::tls_not_understood) : fail();
  }
}

// One at a time, so that it is known after which of them the handshake is over.
void Far::take_records() {
  Bytes record;
  while (state_ == State::hello || state_ == State::answering || state_ == State::joined) {
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
    return SSL_CLIENT_HELLO_SUCCESS;
  }
  const auto pass = [&](modules::Reason reason) {
    passes_ = reason;
    return SSL_CLIENT_HELLO_RETRY;
  };
  name_ = name_in(extension(ssl, TLSEXT_TYPE_server_name));
  if (name_.empty()) return pass(reasons::tls_no_name);
  const Entry* const entry = policy_->find(ends_.server, name_, ends_.client);
  if (!entry) return pass(reasons::tls_not_listed);
  if (!offers_1_3(extension(ssl, TLSEXT_TYPE_supported_versions))) return pass(reasons::tls_version);
  for (const bool of_client : {true, false})
    if (const auto why = site_->remembered.why(key(of_client), now_)) return pass(*why);
  const Bytes protocols = extension(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation);
  if (protocols.size() > 2) append(protocols_, protocols.subspan(2));
  asks_status_ = !extension(ssl, TLSEXT_TYPE_status_request).empty();
  entry_ = entry;
  return SSL_CLIENT_HELLO_RETRY;
}

Remembered::Key Far::key(bool of_client) const {
  return {.client = of_client ? ends_.client : modules::Address{}, .server = ends_.server, .port = ends_.server_port,
          .name = name_};
}

void Far::shake_with_client() {
  const int result = client_->shake_hands();
  const unsigned long error = ERR_peek_error();
  if (Slice bytes = client_->drain(); bytes.size() > 0) out_.pass_on(std::move(bytes));
  if (result == SSL_ERROR_WANT_READ) return;
  if (result == SSL_ERROR_NONE) return give_keys();
  if (refuses_certificate(error))
    site_->remembered.note(key(true), reasons::tls_client_refused, now_ + kClientRemembered);
  fail();
}

void Far::give_keys() {
  SSL* const ssl = client_->ssl();
  const std::uint16_t suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl));
  if (!RecordSuite::of(suite) || client_secret_.empty() || server_secret_.empty()) return fail();
  out_.tell(Keys{.suite = suite, .client_secret = Slice::copy_of(client_secret_),
                 .server_secret = Slice::copy_of(server_secret_), .client_records = client_records_, .server_records = 0,
                 .name = Slice::copy_of(std::as_bytes(std::span(name_)))});
  client_secret_ = {}, server_secret_ = {};
  detail_ = "TLS 1.3 for " + name_ + ", decrypted";
  if (const auto* session = SSL_get_cipher_name(ssl)) (detail_ += ", ") += session;
  state_ = State::joined;
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

void Far::from_twin(TimePoint now, Slice bytes) {
  now_ = now;
  const auto message = twin::decode<Message>(bytes.bytes());
  if (message && state_ == State::joined && std::holds_alternative<Taken>(*message) && records_.held_bytes() == 0) {
    state_ = State::open;
    client_.reset();
    return;
  }
  if (message && state_ == State::open && std::holds_alternative<Truncated>(*message)) {
    truncated_ = true;
    return;
  }
  out_.abort();
}

void Far::stream_ended(TimePoint now, modules::Ending ending) {
  now_ = now;
  if (ending == modules::Ending::reset) return out_.abort();
  if (state_ == State::hello) splice(reasons::tls_not_understood);
  if (state_ == State::aside) return out_.end_lan();
  if (state_ != State::open) return fail();
  end_server(!truncated_);
}

// --------------------------------------------------------------------------------------------- with the server

void Far::ask_server() {
  state_ = State::asking;
  held_ = {};
  server_ = std::make_unique<Leg>(entry_->to_server.get(), static_cast<LegUser&>(*this));
  SSL* const ssl = server_->ssl();
  SSL_set_connect_state(ssl);
  const auto* const offered = reinterpret_cast<const unsigned char*>(protocols_.data());
  if (SSL_set_tlsext_host_name(ssl, name_.c_str()) != 1 || SSL_set1_host(ssl, name_.c_str()) != 1 ||
      (!protocols_.empty() && SSL_set_alpn_protos(ssl, offered, static_cast<unsigned>(protocols_.size())) != 0))
    throw std::bad_alloc();
  if (asks_status_) SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp);
  shake_with_server();
}

void Far::shake_with_server() {
  const int result = server_->shake_hands();
  const bool is_refused = result != SSL_ERROR_NONE && result != SSL_ERROR_WANT_READ;
  if (is_refused || client_certificate_) {
    const std::string why = client_certificate_ ? "it asks for a client certificate" : last_error();
    detail_ = "TLS for " + name_ + " not decrypted: " + why;
    return refuse(client_certificate_ ? reasons::tls_client_certificate : reasons::tls_server_refused);
  }
  if (Slice bytes = server_->drain(); bytes.size() > 0) out_.to_lan(std::move(bytes));
  if (result != SSL_ERROR_NONE) return;
  state_ = State::answering;
  shake_with_client();
  take_records();
}

Bytes Far::choose_protocol() const {
  const unsigned char* data = nullptr;
  unsigned length = 0;
  SSL_get0_alpn_selected(server_->ssl(), &data, &length);
  return std::as_bytes(std::span(data, length));
}

// The server's own, for the same certificate only: of another it would say nothing true, and clients would refuse it.
Bytes Far::certificate_status(const X509* certificate) const {
  const X509* const at_server = SSL_get0_peer_certificate(server_->ssl());
  if (!certificate || !at_server || X509_cmp(certificate, at_server) != 0) return {};
  const unsigned char* status = nullptr;
  const long size = SSL_get_tlsext_status_ocsp_resp(server_->ssl(), &status);
  return size > 0 ? std::as_bytes(std::span(status, static_cast<std::size_t>(size))) : Bytes{};
}

void Far::on_secret(std::string_view line) {
  if (line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) client_secret_ = key_log_secret(line);
  if (line.starts_with("SERVER_TRAFFIC_SECRET_0 ")) server_secret_ = key_log_secret(line);
}

void Far::from_lan(TimePoint now, Slice bytes) {
  now_ = now;
  switch (state_) {
    case State::hello:
      splice(reasons::tls_not_understood);  // the server speaks first
      [[fallthrough]];
    case State::aside:
      return out_.pass_on(std::move(bytes));
    case State::over:
      return;
    default:
      server_->feed(bytes.bytes());
  }
  if (state_ == State::asking) return shake_with_server();
  if (state_ == State::answering) return server_->unread() > kMostEarlyBytes ? fail() : void();
  read_server();
}

void Far::read_server() {
  Buffer plain;
  const auto got = server_->read(plain);
  if (!plain.empty()) out_.pass_on(Slice::copy_of(plain));
  if (Slice bytes = server_->drain(); bytes.size() > 0) out_.to_lan(std::move(bytes));
  if (got == Leg::Read::failed) return fail();
  if (got == Leg::Read::closed) out_.end_stream();
}

void Far::to_server(Bytes plain) {
  if (client_done_) return;
  if (!server_->write(plain)) return fail();
  if (Slice bytes = server_->drain(); bytes.size() > 0) out_.to_lan(std::move(bytes));
}

void Far::end_server(bool orderly) {
  if (std::exchange(client_done_, true)) return;
  if (orderly) server_->close();
  if (Slice bytes = server_->drain(); bytes.size() > 0) out_.to_lan(std::move(bytes));
  out_.end_lan();
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

void Far::splice(modules::Reason reason) {
  state_ = State::aside;
  reason_ = reason;
  if (!lan_ended_) out_.step_aside_to_stream(reason, {});
  if (!held_.empty()) out_.to_lan(Slice::copy_of(held_));
  held_ = {};
  records_ = {};
  client_.reset();
  if (twin_aside_) out_.step_aside_to_lan();
}

void Far::refuse(modules::Reason reason) {
  site_->remembered.note(key(false), reason, now_ + kServerRemembered);
  reason_ = reason;
  fail();
}

void Far::fail() {
  ERR_clear_error();
  state_ = State::over;
  out_.abort();
}

void Far::twin_stepped_aside(TimePoint now) {
  now_ = now;
  if (std::exchange(twin_aside_, true)) return;
  if (state_ == State::aside) return out_.step_aside_to_lan();
  if (state_ != State::hello) return fail();
  splice(reasons::tls_not_understood);
}

}  // namespace longhaul::tls
