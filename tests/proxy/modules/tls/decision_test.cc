// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/decision.h"

#include "proxy/modules/tls/far_site.h"
#include "proxy/modules/tls/reasons.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {
namespace {

std::string code_of(modules::Reason reason) { return std::string(reason->code); }

struct Deciding {
  World world;
  std::shared_ptr<const Policy> policy = policy_for("a.corp");
  Site site;
  modules::Ends ends{.server_port = 443};
  modules::TimePoint now{};
  Context client_context = world.client_context();
  std::string protocols =
      "\x06"
      "echo/1";

  std::shared_ptr<const Policy> policy_for(const std::string& name) const {
    return std::static_pointer_cast<const Policy>(world.policy(name));
  }
  // What a client says first that wants this server.
  std::string hello(const std::string& name) {
    End client(client_context.get(), true);
    if (!name.empty()) SSL_set_tlsext_host_name(client.ssl(), name.c_str());
    if (!protocols.empty())
      SSL_set_alpn_protos(client.ssl(), reinterpret_cast<const unsigned char*>(protocols.data()),
                          static_cast<unsigned>(protocols.size()));
    return client.out_after_start();
  }
  // The reason why it passes; "terminated" otherwise.
  std::string decides(const std::string& name) {
    Decision decided(site.undecided.get(), *policy, site.remembered, ends);
    const std::string said = hello(name);
    const auto next = decided.take(now, std::as_bytes(std::span(said)));
    REQUIRE(next != Decision::Next::more);
    return next == Decision::Next::terminated ? "terminated" : code_of(decided.reason());
  }
};

TEST_CASE("tls decision: a listed name is terminated, and its ClientHello says for what it asks") {
  Deciding one;
  const std::string said = one.hello("A.Corp.");
  Decision decision(one.site.undecided.get(), *one.policy, one.site.remembered, one.ends);
  REQUIRE(decision.take(one.now, std::as_bytes(std::span(said))) == Decision::Next::terminated);
  const Wanted wanted = decision.take_wanted();
  CHECK(wanted.name == "a.corp");
  CHECK(wanted.entry == one.policy->find({}, "a.corp", {}));
  CHECK(std::ranges::equal(wanted.protocols, std::as_bytes(std::span(one.protocols))));
  CHECK_FALSE(wanted.asks_status);
  CHECK(wanted.hello_records == 1);
  // Nothing was said to the client.
  CHECK(decision.take_leg()->drain().size() == 0);
}

TEST_CASE("tls decision: connections that are not listed, or give no name, pass with a reason") {
  Deciding one;
  CHECK(one.decides("a.corp") == "terminated");
  CHECK(one.decides("") == code_of(reasons::tls_no_name));
  CHECK(one.decides("b.corp") == code_of(reasons::tls_not_listed));
  SSL_CTX_set_max_proto_version(one.client_context.get(), TLS1_2_VERSION);
  CHECK(one.decides("a.corp") == "terminated");
  // Nothing that this program has.
  SSL_CTX_set_cipher_list(one.client_context.get(), "ECDHE-ECDSA-AES128-SHA");
  CHECK(one.decides("a.corp") == code_of(reasons::tls_version));
}

TEST_CASE("tls decision: what is not a ClientHello is not understood") {
  Deciding one;
  Decision decision(one.site.undecided.get(), *one.policy, one.site.remembered, one.ends);
  const std::string said("\x16\x03\x01\x00\x04\x01\x00\x00\x00", 9);
  CHECK(decision.take(one.now, std::as_bytes(std::span(said))) == Decision::Next::passes);
  CHECK(code_of(decision.reason()) == code_of(reasons::tls_not_understood));
  CHECK(ERR_peek_error() == 0);
}

TEST_CASE(
    "tls decision: a refusal is remembered for its client, or for all of its server, until it expires") {
  Deciding one;
  one.ends.client[15] = std::byte{1};
  const auto until = one.now + std::chrono::minutes(10);
  one.site.remembered.note(Remembered::of_server(one.ends, "a.corp"), reasons::tls_server_refused, until);
  CHECK(one.decides("a.corp") == code_of(reasons::tls_server_refused));
  // The client's own counts first, and for no other client.
  one.site.remembered.note(Remembered::of_client(one.ends, "a.corp"), reasons::tls_client_refused, until);
  CHECK(one.decides("a.corp") == code_of(reasons::tls_client_refused));
  one.ends.client[15] = std::byte{9};
  CHECK(one.decides("a.corp") == code_of(reasons::tls_server_refused));
  one.ends.server_port = 8443;
  CHECK(one.decides("a.corp") == "terminated");
  one.ends.server_port = 443;
  one.now = until + std::chrono::seconds(1);
  CHECK(one.decides("a.corp") == "terminated");
}

TEST_CASE("tls decision: a resumed client is served only by the same entry, and with a protocol that fits") {
  Deciding one;
  const std::string stamp = one.policy->find({}, "a.corp", {})->stamp;
  const auto slice = [](const std::string& text) { return Slice::copy_of(std::as_bytes(std::span(text))); };
  const auto wanted = [&](const std::string& name, const std::string& entry, const std::string& protocol) {
    return wanted_by_resumed({.name = slice(name), .entry = slice(entry), .protocol = slice(protocol)},
                             *one.policy, one.site.remembered, one.ends, one.now);
  };
  const auto made = wanted("a.corp", stamp, "echo/1");
  REQUIRE(made);
  CHECK(made->name == "a.corp");
  CHECK(std::ranges::equal(made->protocols, std::as_bytes(std::span(one.protocols))));
  CHECK(wanted("a.corp", stamp, "")->protocols.empty());
  CHECK(wanted("a.corp", stamp, std::string(255, 'x')));
  CHECK_FALSE(wanted("a.corp", stamp, std::string(256, 'x')));
  CHECK_FALSE(wanted("b.corp", stamp, ""));
  CHECK_FALSE(wanted("", stamp, ""));
  CHECK_FALSE(wanted("not a name", stamp, ""));
  CHECK_FALSE(wanted("a.corp", "", ""));
  CHECK_FALSE(wanted("a.corp", stamp + "x", ""));
  one.site.remembered.note(Remembered::of_server(one.ends, "a.corp"), reasons::tls_server_refused,
                           one.now + std::chrono::minutes(1));
  CHECK_FALSE(wanted("a.corp", stamp, ""));
}

}  // namespace
}  // namespace longhaul::tls
