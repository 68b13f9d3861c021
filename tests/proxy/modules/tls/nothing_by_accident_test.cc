// SPDX-License-Identifier: Apache-2.0
// Nothing by accident: what is listed is decrypted, and nothing else is touched. Every combination of name, server, client,
// protocols, version, the server's wish for a certificate, and resumption; and ClientHellos that were changed.
#include <catch2/catch.hpp>

#include "proxy/modules/tls/descriptor.h"
#include "tests/proxy/modules/kit/twins.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {
namespace {

modules::Address address(int last) {
  modules::Address made{};
  made[10] = made[11] = std::byte{0xff};
  made[12] = std::byte{10}, made[15] = std::byte(last);
  return made;
}

enum class Version : std::uint8_t { tls_1_3, tls_1_2, tls_1_2_cbc };

struct Case {
  std::string name;  // empty: the client gives none
  bool has_listed_server, has_listed_client;
  bool offers_protocols;
  Version version;
  bool wants_certificate;

  bool is_decrypted() const {
    return name == "a.corp" && has_listed_server && has_listed_client && version != Version::tls_1_2_cbc && !wants_certificate;
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> all;
  const bool both[] = {true, false};
  for (const char* name : {"a.corp", "b.corp", "x.a.corp", ""})
    for (const bool server : both)
      for (const bool client : both)
        for (const bool protocols : both)
          for (const Version version : {Version::tls_1_3, Version::tls_1_2, Version::tls_1_2_cbc})
            for (const bool certificate : both) all.push_back({name, server, client, protocols, version, certificate});
  return all;
}

struct Setting {
  World world;
  std::shared_ptr<const modules::Secrets> secrets;
  std::shared_ptr<modules::Instance> instance{kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1})};

  Setting() {
    std::vector<modules::ServerFiles> tables;
    tables.push_back(table("a.corp", world.shown, world.authority));
    tables[0].addresses = {{.address = address(2), .prefix_length = 128}};
    tables[0].clients = {{.address = address(7), .prefix_length = 128}};
    secrets = *Policy::read(tables);
    instance->use_secrets(secrets);
  }
};

// A connection of that case; every byte on both LANs is noted.
struct Run {
  Run(Setting& setting, const Case& is, unsigned seed, SSL_SESSION* resumes)
      : twins(kDescriptor, seed, setting.instance,
              {.client = address(is.has_listed_client ? 7 : 8), .server = address(is.has_listed_server ? 2 : 3), .server_port = 443}),
        client_context(setting.world.client_context()),
        server_context(setting.world.server_context(setting.world.real)),
        client(client_context.get(), true) {
    SSL* const ssl = client.ssl();
    SSL_set_verify(ssl, SSL_VERIFY_NONE, nullptr);
    if (!is.name.empty()) SSL_set_tlsext_host_name(ssl, is.name.c_str());
    static constexpr unsigned char kProtocols[] = "\x06" "echo/1" "\x08" "http/1.1";
    if (is.offers_protocols) SSL_set_alpn_protos(ssl, kProtocols, sizeof kProtocols - 1);
    if (is.version != Version::tls_1_3) SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
    if (is.version == Version::tls_1_2_cbc) SSL_set_cipher_list(ssl, "ECDHE-ECDSA-AES128-SHA256");
    SSL_CTX_set_cipher_list(server_context.get(), "ALL");
    if (is.wants_certificate) SSL_CTX_set_verify(server_context.get(), SSL_VERIFY_PEER, nullptr);
    if (resumes) SSL_set_session(ssl, resumes);
    server.emplace(server_context.get(), false);
    twins.on_redial = [this] {
      server.emplace(server_context.get(), false);
      heard_by_server.clear(), said_by_server.clear();
    };
    twins.on_client_bytes = [this] {
      heard_by_client += twins.at_client;
      client.take(twins.at_client), speak();
    };
    twins.on_server_bytes = [this] {
      heard_by_server += twins.at_server;
      server->take(twins.at_server), speak();
    };
    client.go_on();
    speak();
    twins.run();
  }
  void speak() {
    if (client.is_up && !std::exchange(asked, true)) client.say("question");
    if (server->heard == "question" && !std::exchange(answered, true)) server->say("answer"), server->close();
    if (client.closed && !std::exchange(closed, true)) client.close();
    const std::string from_client = client.out(), from_server = server->out();
    said_by_client += from_client, said_by_server += from_server;
    twins.client_sends(from_client), twins.server_sends(from_server);
    if (closed) twins.client_ends();
    if (answered) twins.server_ends();
  }
  bool is_decrypted() { return twins.far.module.detail().find(", decrypted") != std::string_view::npos; }
  bool sees(const Issued& issued) {
    X509* const peer = SSL_get0_peer_certificate(client.ssl());
    return peer && X509_cmp(peer, issued.certificate.get()) == 0;
  }

  kit::Twins twins;
  Context client_context, server_context;
  End client;
  std::optional<End> server;
  std::string said_by_client, heard_by_server, said_by_server, heard_by_client;
  bool asked = false, answered = false, closed = false;
};

TEST_CASE("tls: nothing by accident: what is listed is decrypted, all else has the same bytes on both LANs") {
  unsigned seed = 0, decrypted = 0, passed = 0;
  for (const Case& is : all_cases()) {
    Setting setting;
    std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> session(nullptr, SSL_SESSION_free);
    for (const bool again : {false, true}) {
      CAPTURE(is.name, is.has_listed_server, is.has_listed_client, is.offers_protocols, static_cast<int>(is.version),
              is.wants_certificate, again, ++seed);
      Run run(setting, is, seed, session.get());
      CHECK(run.client.heard == "answer");
      CHECK(run.server->heard == "question");
      CHECK_FALSE(run.twins.is_reset());
      CHECK(run.is_decrypted() == is.is_decrypted());
      if (is.is_decrypted()) {
        CHECK(SSL_session_reused(run.client.ssl()) == again);
        CHECK((again || run.sees(setting.world.shown)));
        ++decrypted;
      } else {
        CHECK(run.sees(setting.world.real));
        CHECK((run.heard_by_server == run.said_by_client));
        CHECK((run.heard_by_client == run.said_by_server));
        ++passed;
      }
      session.reset(SSL_get1_session(run.client.ssl()));
    }
  }
  CHECK(decrypted == 8);
  CHECK(passed == 2 * all_cases().size() - 8);
}

TEST_CASE("tls: nothing by accident: a ClientHello that was changed reaches the server as it is, or ours does") {
  Setting setting;
  unsigned passed = 0, asked = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    setting.instance->use_secrets(setting.secrets);  // forgets the servers that have refused
    const Context client_context = setting.world.client_context(), server_context = setting.world.server_context(setting.world.real);
    End client(client_context.get(), true), server(server_context.get(), false);
    SSL_set_tlsext_host_name(client.ssl(), "a.corp");
    if (seed % 3 == 0) SSL_set_max_proto_version(client.ssl(), TLS1_2_VERSION);
    std::string hello = client.out_after_start();
    kit::Twins twins(kDescriptor, seed, setting.instance, {.client = address(7), .server = address(2), .server_port = 443});
    for (unsigned changes = 1 + static_cast<unsigned>(twins.random() % 3); changes > 0; --changes) {
      const std::size_t at = twins.random() % hello.size();
      switch (twins.random() % 4) {
        case 0:
          hello[at] = static_cast<char>(twins.random());
          break;
        case 1:
          hello[at] = static_cast<char>(hello[at] ^ 1 << twins.random() % 8);
          break;
        case 2:
          hello.erase(at, 1 + twins.random() % 4);
          break;
        default:
          hello.insert(at, 1, static_cast<char>(twins.random()));
      }
      if (hello.empty()) hello = "x";
    }
    std::string heard_by_server;
    bool is_redialled = false;
    twins.on_redial = [&] {
      heard_by_server.clear();
      is_redialled = true;
    };
    // A server that says nothing, and ends the connection.
    twins.on_server_bytes = [&] { heard_by_server += std::exchange(twins.at_server, {}); };
    twins.client_sends(hello);
    twins.run();
    const bool is_ours = !heard_by_server.empty() && heard_by_server != hello;
    if (is_ours) {
      CHECK(heard_by_server.front() == 22);
      CHECK(heard_by_server.find("a.corp") != std::string::npos);
      ++asked;
    }
    twins.server_ends();
    twins.client_ends();
    twins.run();
    CHECK_FALSE(twins.is_reset());
    // One that ours cannot answer either is found out later: its server was asked, and is connected again.
    CHECK((is_redialled || !is_ours));
    CHECK((heard_by_server == hello));
    ++passed;
  }
  CHECK(passed == 150);
  CHECK(asked > 0);
}

}  // namespace
}  // namespace longhaul::tls
