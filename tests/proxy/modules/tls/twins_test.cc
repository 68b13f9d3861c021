// SPDX-License-Identifier: Apache-2.0
// Both halves between a client and a server of libssl, cut and ordered by a seed.
#include <openssl/err.h>

#include <catch2/catch.hpp>

#include "proxy/modules/tls/reasons.h"
#include "tests/proxy/modules/tls/play.h"

namespace longhaul::tls {
namespace {

TEST_CASE("tls: what client and server say arrives, whatever is cut or late") {
  const World world;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Play play(world, world.real, "a.corp", seed);
    CHECK_FALSE(play.twins.is_reset());
    CHECK(play.server->heard == play.question);
    CHECK(play.client.heard == play.answer);
    CHECK(play.client.closed);
    CHECK(play.redials == 0);
    CHECK(play.sees(world.shown));
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(play.client.ssl(), &chosen, &size);
    CHECK(std::string(reinterpret_cast<const char*>(chosen), size) == "echo/1");
  }
}

TEST_CASE("tls: a client is offered no newer version than the server has") {
  const World world;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Play play(world, world.real, "a.corp", 1, Play::Until::closed,
              [version](Play& p) { SSL_CTX_set_max_proto_version(p.server_context.get(), version); });
    CHECK(play.client.heard == play.answer);
    CHECK(play.sees(world.shown));
    CHECK(SSL_version(play.client.ssl()) == version);
  }
  SECTION("and fails where it would fail without the pair") {
    Play play(world, world.real, "a.corp", 1, Play::Until::closed, [](Play& p) {
      SSL_CTX_set_max_proto_version(p.server_context.get(), TLS1_2_VERSION);
      SSL_set_min_proto_version(p.client.ssl(), TLS1_3_VERSION);
    });
    CHECK_FALSE(play.client.is_up);
    CHECK(play.redials == 1);
    CHECK(play.twins.far.module.reason() == modules::Reason(reasons::tls_version));
    CHECK(play.heard_by_server.ends_with(play.client_says_first));
  }
}

TEST_CASE("tls: a server that closes while the client still shakes hands is heard to the end") {
  const World world;
  const auto [cuts, fails] =
      GENERATE(std::pair(false, false), std::pair(true, false), std::pair(false, true));
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed, version, cuts, fails);
    Play play(world, world.real, "a.corp", seed, Play::Until::closed,
              [=, cuts = cuts, fails = fails](Play& p) {
                SSL_CTX_set_max_proto_version(p.server_context.get(), version);
                p.greets = true;
                p.cuts = cuts, p.fails = fails;
                p.asked = true;  // the client only listens
              });
    CHECK_FALSE(play.twins.is_reset());
    CHECK(play.client.is_up);
    CHECK(play.client.heard == play.answer);
    CHECK(play.client.closed == (!cuts && !fails));
    CHECK(play.client.heard_alert() == (fails ? End::kFails : 0));
    CHECK(play.twins.near.lan_ended);
    CHECK(play.redials == 0);
    CHECK(play.sees(world.shown));
  }
}

TEST_CASE("tls: a client that says all at once, and ends before the near half has the keys, is answered") {
  const World world;
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(version, seed);
    Play play(world, world.real, "a.corp", seed, Play::Until::closed, [&](Play& p) {
      SSL_set_max_proto_version(p.client.ssl(), version);
      p.says_all_at_once = true;
    });
    CHECK_FALSE(play.twins.is_reset());
    CHECK(play.server->heard == play.question);
    CHECK(play.server->closed);
    CHECK(play.client.heard == play.answer);
    CHECK(play.client.closed);
    CHECK(play.sees(world.shown));
  }
}

TEST_CASE("tls: a client with TLS 1.2 and an AEAD suite is decrypted, any other passes") {
  const World world;
  const auto with = [](const char* suites) {
    return [suites](Play& p) {
      SSL_set_max_proto_version(p.client.ssl(), TLS1_2_VERSION);
      SSL_set_cipher_list(p.client.ssl(), suites);
      SSL_CTX_set_cipher_list(p.server_context.get(), "ALL");
    };
  };
  for (const char* suite : {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"})
    for (unsigned seed = 0; seed < 20; ++seed) {
      CAPTURE(suite, seed);
      Play play(world, world.real, "a.corp", seed, Play::Until::closed, with(suite));
      CHECK_FALSE(play.twins.is_reset());
      CHECK(play.server->heard == play.question);
      CHECK(play.client.heard == play.answer);
      CHECK(play.client.closed);
      CHECK(play.sees(world.shown));
      CHECK(SSL_get_cipher_name(play.client.ssl()) == std::string(suite));
    }
  // CBC; of a key that the certificate does not have.
  for (const char* suites : {"ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES128-GCM-SHA256"}) {
    CAPTURE(suites);
    Play play(world, world.real, "a.corp", 1, Play::Until::closed, with(suites));
    CHECK(play.client.heard == play.answer);
    CHECK(play.sees(world.real));
    CHECK(play.redials == 0);
    CHECK(play.twins.far.module.reason() == modules::Reason(reasons::tls_version));
  }
}

TEST_CASE("tls: a client that has no curve of the certificate's shakes hands with the server itself") {
  const World world;
  Play play(world, world.real, "a.corp", 1, Play::Until::closed,
            [](Play& p) { SSL_set1_sigalgs_list(p.client.ssl(), "RSA-PSS+SHA256:ed25519"); });
  CHECK_FALSE(play.twins.is_reset());
  CHECK(play.redials == 1);
  CHECK_FALSE(play.client.is_up);  // of the server's alert: it has the same kind of key
  CHECK(play.client.failed);
}

TEST_CASE(
    "tls: a client that pretends to use Encrypted Client Hello is decrypted, and the far half pretends like "
    "it") {
  const World world;
  // The last one is none that it offers at once: the server requests it.
  for (const char* groups : {"X25519", "P-384"})
    for (const bool pretends : {false, true}) {
      CAPTURE(groups, pretends);
      Play play(world, world.real, "a.corp", 1, Play::Until::closed, [&](Play& p) {
        if (pretends) p.client.pretend_ech();
        SSL_CTX_set1_groups_list(p.server_context.get(), groups);
      });
      CHECK(play.server->heard == play.question);
      CHECK(play.client.heard == play.answer);
      CHECK(play.sees(world.shown));
      const std::string extension("\xfe\x0d\x00\xba", 4);  // with its size
      CHECK((play.heard_by_server.find(extension) != std::string::npos) == pretends);
      const std::size_t at = play.client_says_first.find(extension);
      REQUIRE((at != std::string::npos) == pretends);
      if (pretends)
        CHECK(play.heard_by_server.find(play.client_says_first.substr(at, 190)) == std::string::npos);
    }
}

TEST_CASE("tls: renegotiation in TLS 1.2 is refused") {
  const World world;
  Play play(world, world.real, "a.corp", 1, Play::Until::answered, [](Play& p) {
    SSL_set_max_proto_version(p.client.ssl(), TLS1_2_VERSION);
    SSL_clear_options(p.client.ssl(), SSL_OP_NO_RENEGOTIATION);
  });
  REQUIRE(play.client.heard == play.answer);
  SSL_renegotiate(play.client.ssl());
  SSL_do_handshake(play.client.ssl());
  int reason = 0;
  play.twins.on_client_bytes = [&] {
    play.client.take(play.twins.at_client);
    if (play.client.failed) reason = ERR_GET_REASON(ERR_peek_last_error());
    play.speak();
  };
  play.speak();
  play.twins.run();
  CHECK(play.client.failed);  // libssl's takes the warning for an error
  CHECK(reason == SSL_R_NO_RENEGOTIATION);
  CHECK(play.server->heard == play.question);
  CHECK(play.server->heard_alert() == SSL_AD_HANDSHAKE_FAILURE);
}

TEST_CASE("tls: a server that speaks first is heard from its first byte on") {
  const World world;
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    kit::Twins twins(kDescriptor, seed, world.policy("a.corp"));
    twins.server_sends("220 ready\r\n");
    twins.run();
    CHECK(twins.at_client == "220 ready\r\n");
    twins.client_sends("EHLO client\r\n");
    twins.run();
    twins.server_sends("250 hello\r\n");
    twins.run();
    CHECK(twins.at_server == "EHLO client\r\n");
    CHECK(twins.at_client == "220 ready\r\n250 hello\r\n");
  }
}

TEST_CASE("tls: a client may change its keys now and then, and not all the time") {
  const World world;
  for (const bool is_flood : {false, true}) {
    Play play(world, world.real, "a.corp", 1, Play::Until::answered,
              [](Play& p) { SSL_set_min_proto_version(p.client.ssl(), TLS1_3_VERSION); });
    REQUIRE(play.client.heard == play.answer);
    const std::string before = play.server->heard;
    for (int i = 0; i < (is_flood ? 40 : 20); ++i) {
      REQUIRE(SSL_key_update(play.client.ssl(), i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
      SSL_do_handshake(play.client.ssl());
      play.twins.client_sends(play.client.out());
      play.twins.run();
    }
    CHECK(play.twins.is_reset() == is_flood);
    if (is_flood) continue;
    play.client.say("more");
    play.speak();
    play.twins.run();
    CHECK(play.server->heard == before + "more");
  }
}

TEST_CASE("tls: a server may change its keys now and then, and not all the time") {
  const World world;
  struct Case {
    int updates;
    std::size_t data;  // after each
    bool is_at_once, is_flood;
  };
  for (const Case& is :
       {Case{20, 0, false, false}, {40, 0, false, true}, {40, 0, true, true}, {40, 64 << 10, false, false}}) {
    CAPTURE(is.updates, is.data, is.is_at_once);
    Play play(world, world.real, "a.corp", 1, Play::Until::answered,
              [](Play& p) { SSL_CTX_set_min_proto_version(p.server_context.get(), TLS1_3_VERSION); });
    REQUIRE(play.client.heard == play.answer);
    std::string wanted = play.answer;
    for (int i = 0; i < is.updates; ++i) {
      REQUIRE(SSL_key_update(play.server->ssl(),
                             i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
      SSL_do_handshake(play.server->ssl());
      play.server->say(std::string(is.data, 'x'));
      wanted += std::string(is.data, 'x');
      play.twins.server_sends(play.server->out());
      if (!is.is_at_once) play.twins.run();
    }
    play.twins.run();
    CHECK(play.twins.is_reset() == is.is_flood);
    CHECK(play.twins.far.module.reason() ==
          (is.is_flood ? modules::Reason(reasons::tls_server_floods) : modules::Reason()));
    if (is.is_flood) continue;
    play.server->say("more");
    play.speak();
    play.twins.run();
    CHECK(play.client.heard == wanted + "more");
  }
}

TEST_CASE("tls: the status of a certificate is copied to the client if it is the one that the client gets") {
  const World world;
  Play same(world, world.shown, "a.corp", 1);
  CHECK(same.client.heard == same.answer);
  CHECK(same.client.got_status() == "good, says the authority");
  Play another(world, world.real, "a.corp", 1);
  CHECK(another.client.heard == another.answer);
  CHECK(another.client.got_status().empty());
}

TEST_CASE("tls: either half resets what is decrypted when the feature is switched off, and nothing else") {
  const World world;
  const config::FeatureTable table{kDescriptor.features};
  modules::Surroundings on;
  on.features.modules = config::ModuleFeatures::standard(table);
  for (const bool at_near : {true, false})
    for (const bool is_listed : {true, false}) {
      CAPTURE(at_near, is_listed);
      Play play(world, world.real, is_listed ? "a.corp" : "b.corp", 1, Play::Until::answered);
      REQUIRE(play.client.heard == play.answer);
      auto& half = at_near ? play.twins.near : play.twins.far;
      half.module.on_surroundings({}, on), half.collect();
      play.twins.run();
      REQUIRE_FALSE(play.twins.is_reset());
      for (int i = 0; i < 2; ++i) half.module.on_surroundings({}, {}), half.collect();
      play.twins.run();
      CHECK(play.twins.is_reset() == is_listed);
    }
}

TEST_CASE("tls: a name that is not listed reaches its server byte for byte") {
  const World world;
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Play play(world, world.real, "b.corp", seed);
    CHECK(play.client.heard == play.answer);
    CHECK(play.sees(world.real));
  }
}

TEST_CASE("tls: where the server does not verify, the client shakes hands with it itself, on its first connection") {
  const World world;
  const Issued other_authority = issue("other"), forged = issue("a.corp", &other_authority);
  const Issued other_name = issue("b.corp", &world.authority);
  for (const Issued* shown : {&forged, &other_name})
    for (unsigned seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      Play play(world, *shown, "a.corp", seed);
      CHECK_FALSE(play.twins.is_reset());
      CHECK(play.redials == 1);
      CHECK_FALSE(play.client.is_up);
      CHECK(play.sees(*shown));
      CHECK(SSL_get_verify_result(play.client.ssl()) != X509_V_OK);
      CHECK(play.server->heard.empty());
    }
}

TEST_CASE("tls: what is wrong with a server's certificate is said, and a common name is no name") {
  const World world;
  const Issued expired = issue("a.corp", &world.authority, {.begins = -7200, .ends = -3600});
  const Issued other_name = issue("b.corp", &world.authority);
  const Issued common_name = issue("a.corp", &world.authority, {.has_alternative_names = false});
  const std::pair<const Issued*, int> cases[] = {{&expired, X509_V_ERR_CERT_HAS_EXPIRED},
                                                 {&other_name, X509_V_ERR_HOSTNAME_MISMATCH},
                                                 {&common_name, X509_V_ERR_HOSTNAME_MISMATCH}};
  for (const auto& [shown, error] : cases) {
    const std::string why = X509_verify_cert_error_string(error);
    CAPTURE(why);
    Play play(world, *shown, "a.corp", 1, Play::Until::closed,
              [](Play& p) { SSL_set_verify(p.client.ssl(), SSL_VERIFY_NONE, nullptr); });
    CHECK(play.redials == 1);
    CHECK(play.client.heard == play.answer);
    CHECK(play.sees(*shown));
    CHECK(play.twins.far.module.reason() == modules::Reason(reasons::tls_server_refused));
    CHECK(play.twins.far.module.detail() ==
          "TLS for a.corp not decrypted: certificate verify failed: " + why);
  }
}

TEST_CASE("tls: a client that takes any certificate talks to the server that did not verify, and its bytes are its own") {
  const World world;
  const Issued other_authority = issue("other"), forged = issue("a.corp", &other_authority);
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Play play(world, forged, "a.corp", seed, Play::Until::closed,
              [](Play& p) { SSL_set_verify(p.client.ssl(), SSL_VERIFY_NONE, nullptr); });
    CHECK(play.redials == 1);
    CHECK(play.client.heard == play.answer);
    CHECK(play.server->heard == play.question);
    CHECK(play.sees(forged));
    const auto at = play.heard_by_server.find(play.client_says_first);
    CHECK(at != std::string::npos);
  }
}

TEST_CASE("tls: a server that asks for a certificate, or speaks no protocol of the client's, is the client's own") {
  const World world;
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Play asks(world, world.real, "a.corp", seed, Play::Until::closed,
              [](Play& p) { SSL_CTX_set_verify(p.server_context.get(), SSL_VERIFY_PEER, nullptr); });
    CHECK(asks.redials == 1);
    CHECK(asks.client.heard == asks.answer);
    CHECK(asks.sees(world.real));
    Play refuses(world, world.real, "a.corp", seed, Play::Until::closed, [](Play& p) {
      SSL_CTX_set_alpn_select_cb(
          p.server_context.get(),
          [](SSL*, const unsigned char**, unsigned char*, const unsigned char*, unsigned, void*) {
            return SSL_TLSEXT_ERR_ALERT_FATAL;
          },
          nullptr);
    });
    CHECK(refuses.redials == 1);
    CHECK_FALSE(refuses.client.is_up);
    CHECK(refuses.client.failed);
    CHECK(ERR_GET_REASON(refuses.client.error) == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
  }
}

TEST_CASE("tls: a record that was changed on its way resets, and nothing of it is passed on") {
  const World world;
  kit::Twins twins(kDescriptor, 5, world.policy("a.corp"));
  const Context client_context = world.client_context(), server_context = world.server_context(world.real);
  End client(client_context.get(), true), server(server_context.get(), false);
  SSL_set_tlsext_host_name(client.ssl(), "a.corp");
  const auto move = [&] {
    client.go_on(), server.go_on();
    twins.client_sends(client.out()), twins.server_sends(server.out());
  };
  twins.on_client_bytes = [&] { client.take(twins.at_client), move(); };
  twins.on_server_bytes = [&] { server.take(twins.at_server), move(); };
  move();
  twins.run();
  REQUIRE(client.is_up);
  client.say("genuine");
  twins.client_sends(client.out());
  twins.run();
  CHECK(server.heard == "genuine");
  client.say("forged!");
  std::string record = client.out();
  record[record.size() - 20] = static_cast<char>(record[record.size() - 20] ^ 1);
  twins.client_sends(record);
  twins.run();
  CHECK(twins.is_reset());
  CHECK(server.heard == "genuine");
}

}  // namespace
}  // namespace longhaul::tls
