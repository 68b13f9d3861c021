// SPDX-License-Identifier: Apache-2.0
// A connection through both halves, from the ClientHello to the end, cut and ordered by a seed.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proxy/modules/tls/descriptor.h"
#include "tests/proxy/modules/kit/twins.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {

// A client says `question` and the server `answer`, then one of them closes; both go through the halves.
struct Play {
  enum class Until : std::uint8_t { answered, closed };
  using Prepare = std::function<void(Play&)>;
  Play(const World& world, const Issued& server_has, const std::string& listed, unsigned seed, Until until = Until::closed,
       const Prepare& prepare = [](Play&) {})
      : Play(world, server_has, world.policy(listed), seed, until, prepare) {}
  Play(const World& world, const Issued& server_has, std::shared_ptr<const modules::Secrets> policy, unsigned seed,
       Until until = Until::closed, const Prepare& prepare = [](Play&) {})
      : closes(until == Until::closed),
        twins(kDescriptor, seed, std::move(policy)),
        client_context(world.client_context()),
        server_context(world.server_context(server_has)),
        client(client_context.get(), true) {
    prepare(*this);
    server.emplace(server_context.get(), false);
    SSL_set_tlsext_host_name(client.ssl(), "a.corp");
    SSL_set1_host(client.ssl(), "a.corp");
    static constexpr unsigned char kProtocols[] = "\x06" "echo/1" "\x08" "http/1.1";
    SSL_set_alpn_protos(client.ssl(), kProtocols, sizeof kProtocols - 1);
    // Not OCSP, which nobody here reads.
    SSL_set_tlsext_status_type(client.ssl(), TLSEXT_STATUSTYPE_ocsp);
    server->have_status("good, says the authority");
    client_says_first = client.out_after_start();
    twins.on_redial = [this] {
      ++redials;
      server.emplace(server_context.get(), false);
    };
    question = text(1 + twins.random() % 40'000), answer = text(1 + twins.random() % 100'000);
    twins.on_client_bytes = [this] { client.take(twins.at_client), speak(); };
    twins.on_server_bytes = [this] {
      heard_by_server += twins.at_server;
      server->take(twins.at_server), speak();
    };
    twins.client_sends(client_says_first);
    speak();
    twins.run();
  }

  void speak() {
    if (client.is_up && !std::exchange(asked, true)) {
      client.say(question);
      if (says_all_at_once) client.close(), twins.client_ends();
    }
    const bool is_time = greets ? server->is_up : server->heard == question;
    if (is_time && !std::exchange(answered, true)) {
      server->say(answer);
      if (closes && !cuts && !fails) server->close();
      if (fails) server->fail();
    }
    if (client.closed && !std::exchange(closed, true)) client.close();
    twins.client_sends(client.out());
    twins.server_sends(server->out());
    if (closed) twins.client_ends();
    if (answered && closes) twins.server_ends();
  }
  std::string text(std::size_t size) {
    std::string made(size, ' ');
    for (char& c : made) c = static_cast<char>('a' + twins.random() % 26);
    return made;
  }
  // Of the chain: libssl names no peer's certificate to a client that did not accept it. Null: none has come.
  const X509* seen() {
    const auto* const chain = SSL_get_peer_cert_chain(client.ssl());
    return sk_X509_num(chain) > 0 ? sk_X509_value(chain, 0) : nullptr;
  }
  bool sees(const Issued& issued) { return seen() && X509_cmp(seen(), issued.certificate.get()) == 0; }

  bool closes;
  bool greets = false;  // the server says `answer` after its handshake, without a question
  bool says_all_at_once = false;  // the client's direction ends with its question
  bool cuts = false;    // its connection ends without close_notify
  bool fails = false;   // the same with a fatal alert
  kit::Twins twins;
  Context client_context, server_context;
  End client;
  std::optional<End> server;  // of the newest connection
  int redials = 0;
  std::string question, answer, client_says_first, heard_by_server;
  bool asked = false, answered = false, closed = false;
};

}  // namespace longhaul::tls
