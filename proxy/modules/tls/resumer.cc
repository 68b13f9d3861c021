// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/resumer.h"

#include <openssl/err.h>

#include <algorithm>
#include <new>

#include "proxy/modules/tls/client_hello.h"
#include "proxy/modules/tls/records.h"

namespace longhaul::tls {
namespace {

// A ServerHello other than HelloRetryRequest (RFC 8446, section 4.1.3): the session was accepted.
bool is_server_hello(Bytes said) {
  static constexpr std::array<unsigned char, 32> kRetry{
      0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
      0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C};
  constexpr std::size_t kRandomAt = kHeadBytes + 4 + 2;
  if (said.size() < kRandomAt + kRetry.size() || said[0] != std::byte{22} || said[kHeadBytes] != std::byte{2})
    return false;
  return !std::ranges::equal(said.subspan(kRandomAt, kRetry.size()), std::as_bytes(std::span(kRetry)));
}

bool offers(Bytes list, Bytes protocol) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t size = std::to_integer<std::size_t>(list[at]);
    if (size + 1 > list.size() - at) return false;
    if (std::ranges::equal(list.subspan(at + 1, size), protocol)) return true;
    at += 1 + size;
  }
  return false;
}

}  // namespace

Context context_to_resume() {
  Context context = context_undecided();
  // The handshake cannot continue without a session: then the far half serves this client.
  SSL_CTX_set_cert_cb(
      context.get(), [](SSL*, void*) { return -1; }, nullptr);
  hand_out_sessions(context.get(), 1);
  return context;
}

Resumer::Resumer(SSL_CTX* context, Sessions& sessions, const Sessions::Place& place)
    : sessions_(sessions), place_(place), leg_(context, *this) {
  SSL_set_accept_state(leg_.ssl());
}

Resumer::Next Resumer::take(modules::TimePoint now, Bytes record) {
  now_ = now;
  leg_.feed(record);
  const int result = leg_.shake_hands();
  out_ = leg_.drain();
  if (result != SSL_ERROR_NONE && result != SSL_ERROR_WANT_READ) {
    ERR_clear_error();
    return has_begun_ ? Next::failed : Next::no;
  }
  if (!has_begun_) {
    if (out_.empty()) return Next::more;
    has_begun_ =
        result == SSL_ERROR_WANT_READ && SSL_session_reused(leg_.ssl()) == 1 && is_server_hello(out_.bytes());
    return has_begun_ ? Next::begun : Next::no;
  }
  if (result == SSL_ERROR_WANT_READ) return Next::more;
  traffic_ = secrets_.take(leg_.ssl(), out_.bytes());
  return traffic_ ? Next::done : Next::failed;
}

int Resumer::on_client_hello(SSL* ssl) {
  name_ = hello_name(ssl);
  const auto protocols = hello_protocols(ssl);
  if (name_.empty() || !protocols || !sessions_.has(place_, name_)) return SSL_CLIENT_HELLO_RETRY;
  offered_.clear();
  append(offered_, *protocols);
  // A session that the client names in the old way is one of TLS 1.2; with 1.3 it would not be resumed.
  const unsigned char* id = nullptr;
  const std::size_t size = SSL_client_hello_get0_session_id(ssl, &id);
  if (size > 0 && sessions_.has(place_, name_, std::string(reinterpret_cast<const char*>(id), size)))
    SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
  return SSL_CLIENT_HELLO_SUCCESS;
}

SSL_SESSION* Resumer::find_session(Bytes id) {
  auto found =
      sessions_.take(place_, name_, std::string(reinterpret_cast<const char*>(id.data()), id.size()), now_);
  if (!found) return nullptr;
  const auto* at = reinterpret_cast<const unsigned char*>(found->bytes.data());
  SSL_SESSION* const session = d2i_SSL_SESSION(nullptr, &at, static_cast<long>(found->bytes.size()));
  if (!session) {
    ERR_clear_error();
    return nullptr;
  }
  const unsigned char* protocol = nullptr;
  std::size_t size = 0;
  SSL_SESSION_get0_alpn_selected(session, &protocol, &size);
  protocol_.clear();
  append(protocol_, std::as_bytes(std::span(protocol, size)));
  // The client must support the protocol that the server chose at that time.
  if (size > 0 && !offers(offered_, protocol_)) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  entry_ = found->entry;
  is_private_ = found->is_private;
  until_ = found->until;
  return session;
}

void Resumer::on_new_session(SSL_SESSION* session) {
  if (auto made = session_bytes(session); !made.bytes.empty() && has_begun_)
    sessions_.put(place_, name_, std::move(made.id), {std::move(made.bytes), entry_, is_private_, until_});
}

}  // namespace longhaul::tls
