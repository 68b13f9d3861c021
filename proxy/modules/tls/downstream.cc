// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/downstream.h"

#include <openssl/err.h>

#include <new>
#include <utility>

namespace longhaul::tls {
namespace {

Slice slice_of(const std::string& text) { return Slice::copy_of(std::as_bytes(std::span(text))); }

}  // namespace

Downstream::Downstream(std::unique_ptr<Leg> leg, std::shared_ptr<const Policy> policy, const Entry& entry,
                       const Upstream& server, Certificate leaf, std::shared_ptr<modules::Memory> memory)
    : policy_(std::move(policy)),
      entry_(entry),
      server_(server),
      leaf_(std::move(leaf)),
      memory_(std::move(memory)),
      leg_(std::move(leg)) {
  SSL_set_app_data(leg_->ssl(), static_cast<LegUser*>(this));
  // The client is shown no better protocol than the server has.
  if (SSL_set_max_proto_version(leg_->ssl(), server.version()) != 1) throw std::bad_alloc();
}

int Downstream::on_client_hello(SSL* ssl) {
  SSL_set_SSL_CTX(ssl, entry_.to_client.get());
  return leaf_ && SSL_use_certificate(ssl, leaf_.get()) != 1 ? SSL_CLIENT_HELLO_ERROR
                                                             : SSL_CLIENT_HELLO_SUCCESS;
}

Downstream::Next Downstream::shake_hands(modules::TimePoint now) {
  if (entry_.held) return shake_slowly(now);
  const int result = leg_->shake_hands();
  return shook(result, ERR_peek_error());
}

Downstream::Next Downstream::shake_slowly(modules::TimePoint now) {
  const Bytes protocol = server_.protocol();
  const Bytes status = server_.status_of(SSL_CTX_get0_certificate(entry_.to_client.get()));
  slow_ = std::make_shared<SlowAnswer>(policy_, entry_, std::move(leg_), std::move(secrets_),
                                       SlowAnswer::Said{.protocol = {protocol.begin(), protocol.end()},
                                                        .status = {status.begin(), status.end()}},
                                       memory_);
  slow_until_ = now + kSlowest;
  if (!slow_->begin()) return lack_key("too many handshakes are waiting for the token");
  return slow_->is_done() ? take_answer() : Next::waits;
}

Downstream::Next Downstream::on_timeout(modules::TimePoint now) {
  if (slow_->is_done()) return take_answer();
  return now >= slow_until_ ? lack_key("the token has not signed within five seconds") : Next::waits;
}

Downstream::Next Downstream::take_answer() {
  const auto answer = std::exchange(slow_, nullptr);
  leg_ = answer->take_leg(*this);
  if (!answer->failure().empty()) return lack_key(answer->failure());
  secrets_ = answer->take_secrets();
  for (SessionBytes& session : answer->take_sessions()) keep(std::move(session));
  return shook(answer->result(), answer->error());
}

Downstream::Next Downstream::lack_key(const std::string& why) {
  slow_.reset();
  why_ = "its key is not available: " + why;
  return Next::no_key;
}

Downstream::Next Downstream::shook(int result, unsigned long error) {
  error_ = error;
  return result == SSL_ERROR_NONE ? Next::done : result == SSL_ERROR_WANT_READ ? Next::more : Next::failed;
}

void Downstream::keep(SessionBytes session) {
  if (!session.bytes.empty() && sessions_.size() < Session::kMost)
    sessions_.push_back({std::move(session), {}});
}

// libssl names each session before it sends its ticket.
void Downstream::on_ticket(Bytes message) {
  if (gave_early_keys_ && !sessions_.empty()) sessions_.back().ticket = Slice::copy_of(message);
}

// What a token signs is done on another thread, and the client's Finished there, too: not worth the order of
// all that.
std::optional<Keys> Downstream::early_keys(const std::string& name) {
  if (gave_early_keys_ || entry_.held) return std::nullopt;
  auto traffic = secrets_.foresee(leg_->ssl(), leg_->transcript());
  if (!traffic) return std::nullopt;
  gave_early_keys_ = true;
  return Keys{.suite = traffic->suite,
              .client_secret = Slice::copy_of(traffic->client),
              .server_secret = Slice::copy_of(traffic->server),
              .name = slice_of(name),
              .is_private = entry_.is_private};
}

std::optional<Downstream::ForTwin> Downstream::secrets(Bytes last_said, std::uint64_t client_records,
                                                       const std::string& name) {
  const auto traffic = secrets_.take(leg_->ssl(), last_said);
  if (!traffic) return std::nullopt;
  ForTwin made{.messages = {}, .version = traffic->is_1_2 ? "TLS 1.2" : "TLS 1.3", .suite = {}};
  if (!gave_early_keys_)
    made.messages.push_back(Keys{.suite = traffic->suite,
                                 .client_secret = Slice::copy_of(traffic->client),
                                 .server_secret = Slice::copy_of(traffic->server),
                                 .client_records = client_records,
                                 .server_records = traffic->server_records,
                                 .name = slice_of(name),
                                 .is_private = entry_.is_private});
  for (Kept& kept : std::exchange(sessions_, {}))
    made.messages.push_back(Session{.id = slice_of(kept.session.id),
                                    .bytes = Slice::copy_of(kept.session.bytes),
                                    .entry = slice_of(entry_.stamp),
                                    .ticket = std::move(kept.ticket)});
  if (const char* const suite = SSL_get_cipher_name(leg_->ssl())) made.suite = suite;
  return made;
}

std::optional<Said> Downstream::said(Bytes plain) {
  if (said_bytes_ > Said::kMostBytes) return std::nullopt;
  said_bytes_ += plain.size();
  const bool is_known = said_bytes_ <= Said::kMostBytes;
  return Said{.is_known = is_known, .bytes = is_known ? Slice::copy_of(plain) : Slice()};
}

}  // namespace longhaul::tls
