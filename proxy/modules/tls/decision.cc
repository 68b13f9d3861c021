// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/decision.h"

#include <openssl/err.h>

#include "proxy/modules/tls/client_hello.h"
#include "proxy/modules/tls/reasons.h"

namespace longhaul::tls {

Decision::Decision(SSL_CTX* undecided, const Policy& policy, const Remembered& remembered,
                   const modules::Ends& ends)
    : policy_(policy),
      remembered_(remembered),
      ends_(ends),
      leg_(std::make_unique<Leg>(undecided, static_cast<LegUser&>(*this))) {
  SSL_set_accept_state(leg_->ssl());
  leg_->keep_transcript();
}

Decision::Next Decision::take(modules::TimePoint now, Bytes record) {
  now_ = now;
  ++records_;
  leg_->feed(record);
  const int result = leg_->shake_hands();
  if (result == SSL_ERROR_WANT_READ) return Next::more;
  if (result == SSL_ERROR_WANT_CLIENT_HELLO_CB && wanted_.entry) return Next::terminated;
  ERR_clear_error();
  if (result != SSL_ERROR_WANT_CLIENT_HELLO_CB) reason_ = reasons::tls_not_understood;
  return Next::passes;
}

int Decision::pass(modules::Reason reason) {
  reason_ = reason;
  return SSL_CLIENT_HELLO_RETRY;
}

int Decision::on_client_hello(SSL* ssl) {
  const std::string name = hello_name(ssl);
  if (name.empty()) return pass(reasons::tls_no_name);
  const Entry* const entry = policy_.find(ends_.server, name, ends_.client);
  if (!entry) return pass(reasons::tls_not_listed);
  if (!hello_offers_1_3(ssl) && !hello_offers_1_2(ssl, entry->public_key()))
    return pass(reasons::tls_version);
  for (const auto& key : {Remembered::of_client(ends_, name), Remembered::of_server(ends_, name)})
    if (const auto why = remembered_.why(key, now_)) return pass(*why);
  if (entry->mint)
    if (const std::string why = entry->mint->why_not(); !why.empty()) {
      detail_ = not_decrypted(name, why);
      return pass(reasons::tls_not_minted);
    }
  const auto protocols = hello_protocols(ssl);
  if (!protocols) return pass(reasons::tls_not_understood);
  wanted_ = {.entry = entry,
             .name = name,
             .protocols = {protocols->begin(), protocols->end()},
             .asks_status = !hello_extension(ssl, TLSEXT_TYPE_status_request).empty(),
             .ech = ech_offer(hello_extension(ssl, kEchExtension)),
             .hello_records = records_};
  return SSL_CLIENT_HELLO_RETRY;
}

std::optional<Wanted> wanted_by_resumed(const Resumed& resumed, const Policy& policy,
                                        const Remembered& remembered, const modules::Ends& ends,
                                        modules::TimePoint now) {
  const auto text = [](const Slice& slice) {
    return std::string_view(reinterpret_cast<const char*>(slice.bytes().data()), slice.size());
  };
  Wanted wanted{.entry = nullptr, .name = plain_name(text(resumed.name)), .protocols = {}};
  if (wanted.name.empty()) return std::nullopt;
  wanted.entry = policy.find(ends.server, wanted.name, ends.client);
  if (!wanted.entry || wanted.entry->stamp != text(resumed.entry) || resumed.protocol.size() > 255 ||
      remembered.why(Remembered::of_server(ends, wanted.name), now))
    return std::nullopt;
  if (!resumed.protocol.empty()) {
    wanted.protocols.push_back(std::byte(resumed.protocol.size()));
    append(wanted.protocols, resumed.protocol.bytes());
  }
  return wanted;
}

}  // namespace longhaul::tls
