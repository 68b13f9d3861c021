// SPDX-License-Identifier: Apache-2.0
// How a client or a server ends a connection with alerts (RFC 8446, section 6), some of which libssl does not
// send.
#include <array>
#include <catch2/catch.hpp>
#include <optional>

#include "crypto/tls_records.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/near.h"
#include "tests/proxy/modules/tls/play.h"

namespace longhaul::tls {
namespace {

// close_notify, internal_error, user_canceled
constexpr std::uint8_t kCloses = 0, kHasFailed = 80, kCancels = 90;

// An answered question, after which the client's records are made here.
struct Alerting {
  Alerting(const World& world, unsigned seed)
      : play(world, world.real, "a.corp", seed, Play::Until::answered, [](Play& p) {
          SSL_set_min_proto_version(p.client.ssl(), TLS1_3_VERSION);
          log_secrets(p.client_context.get());
        }) {
    REQUIRE(play.client.heard == play.answer);
    const SSL_CIPHER* const cipher = SSL_get_current_cipher(play.client.ssl());
    const auto suite = RecordSuite::of(SSL_CIPHER_get_protocol_id(cipher));
    REQUIRE(suite);
    const std::uint64_t records = (play.question.size() + kMaxRecordContent - 1) / kMaxRecordContent;
    sealer.emplace(*suite, key_log_secret(play.client.secret("CLIENT_TRAFFIC_SECRET_0")), records);
  }
  void alert(std::uint8_t level, std::uint8_t description) {
    const std::array<std::byte, 2> content{std::byte{level}, std::byte{description}};
    const Bytes piece(content);
    Buffer sealed;
    REQUIRE(sealer->seal(ContentType::alert, std::span(&piece, 1), sealed));
    play.twins.client_sends({reinterpret_cast<const char*>(sealed.data()), sealed.size()});
  }

  Play play;
  std::optional<RecordSealer> sealer;
};

TEST_CASE("tls: a client that cancels before it closes, as Java does, has closed properly") {
  const World world;
  // The level has no meaning in TLS 1.3.
  for (const std::uint8_t level : {std::uint8_t{1}, std::uint8_t{2}})
    for (unsigned seed = 0; seed < 10; ++seed) {
      CAPTURE(level, seed);
      Alerting client(world, seed);
      Play& play = client.play;
      client.alert(level, kCancels);
      play.twins.run();
      CHECK_FALSE(play.server->closed);
      client.alert(1, kCloses);
      play.twins.client_ends();
      play.twins.run();
      CHECK_FALSE(play.twins.is_reset());
      CHECK(play.server->closed);
      // The server's direction is still open.
      play.server->say("goodbye");
      play.server->close();
      play.twins.server_sends(play.server->out());
      play.twins.server_ends();
      play.twins.run();
      CHECK(play.client.heard == play.answer + "goodbye");
      CHECK(play.client.closed);
    }
}

TEST_CASE("tls: a client that cancels alone has not closed") {
  const World world;
  Alerting cancels(world, 1);
  cancels.alert(1, kCancels);
  cancels.play.twins.client_ends();
  cancels.play.twins.run();
  CHECK_FALSE(cancels.play.server->closed);
  CHECK(cancels.play.twins.far.lan_ended);
}

TEST_CASE("tls: a client's fatal alert reaches the server after the client's data, without a reset") {
  const World world;
  const auto [version, suite] =
      GENERATE(std::pair(TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384"),
               std::pair(TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305"), std::pair(TLS1_3_VERSION, ""));
  const bool is_reset = GENERATE(false, true);
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(version, suite, is_reset, seed);
    Play play(world, world.real, "a.corp", seed, Play::Until::answered,
              [version = version, suite = suite](Play& p) {
                SSL_set_max_proto_version(p.client.ssl(), version);
                SSL_CTX_set_max_proto_version(p.server_context.get(), version);
                SSL_CTX_set_cipher_list(p.server_context.get(), suite);
              });
    REQUIRE(play.client.heard == play.answer);
    play.twins.on_client_bytes = [] {};
    play.client.say("goodbye");
    play.client.fail();
    play.twins.client_sends(play.client.out());
    play.twins.client_ends();
    play.twins.run();
    CHECK_FALSE(play.twins.is_reset());
    CHECK(play.server->heard == play.question + "goodbye");
    CHECK(play.server->failed);
    CHECK(play.server->heard_alert() == End::kFails);
    CHECK(play.twins.far.lan_ended);
    if (is_reset) {  // by the client, after its alert
      play.twins.near.module.lan_ended(play.twins.now, modules::Ending::reset);
      play.twins.near.collect();
      CHECK(play.twins.near.aborted);
      continue;
    }
    play.twins.server_ends();
    play.twins.run();
    CHECK_FALSE(play.twins.is_reset());
    CHECK(play.twins.near.lan_ended);
    CHECK(play.twins.at_client.empty());  // a client that has failed is told nothing more
  }
}

TEST_CASE("tls: a client's alert that the server cannot be sent resets") {
  const World world;
  SECTION("its suite is none of this program's") {
    Play play(world, world.real, "a.corp", 1, Play::Until::answered, [](Play& p) {
      SSL_CTX_set_max_proto_version(p.server_context.get(), TLS1_2_VERSION);
      SSL_CTX_set_cipher_list(p.server_context.get(), "ECDHE-ECDSA-AES128-SHA256");
    });
    REQUIRE(play.client.heard == play.answer);
    play.client.fail();
    play.twins.client_sends(play.client.out());
    play.twins.run();
    CHECK(play.twins.is_reset());
    CHECK_FALSE(play.server->failed);
  }
  SECTION("libssl has changed its key") {
    Play play(world, world.real, "a.corp", 1, Play::Until::answered,
              [](Play& p) { SSL_CTX_set_min_proto_version(p.server_context.get(), TLS1_3_VERSION); });
    REQUIRE(play.client.heard == play.answer);
    REQUIRE(SSL_key_update(play.server->ssl(), SSL_KEY_UPDATE_REQUESTED) == 1);
    SSL_do_handshake(play.server->ssl());
    play.twins.server_sends(play.server->out());
    play.twins.run();
    play.client.say("more");
    play.client.fail();
    play.twins.client_sends(play.client.out());
    play.twins.run();
    CHECK(play.server->heard == play.question + "more");
    CHECK_FALSE(play.server->failed);
    CHECK(play.twins.is_reset());
  }
}

TEST_CASE("tls: a client that refuses the certificate alerts the server in its place, and only ends follow") {
  const World world;
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  const bool server_is_first = GENERATE(false, true);
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(version, server_is_first, seed);
    Play play(world, world.real, "a.corp", seed, Play::Until::answered, [&](Play& p) {
      SSL_set_max_proto_version(p.client.ssl(), version);
      SSL_CTX_set_max_proto_version(p.server_context.get(), version);
      SSL_set1_verify_cert_store(p.client.ssl(), Authorities(X509_STORE_new()).get());
    });
    CHECK_FALSE(play.twins.is_reset());
    CHECK(play.client.failed);
    REQUIRE(play.server->failed);
    // In TLS 1.2 the server's handshake was over.
    CHECK(play.server->is_up == (version == TLS1_2_VERSION));
    CHECK((play.server->is_up ? play.server->heard_alert() : alert_of(play.server->error)) ==
          SSL_AD_UNKNOWN_CA);
    CHECK_FALSE(play.twins.far.lan_ended);
    CHECK(play.sees(world.shown));
    play.twins.client_sends(forged_record());  // which nobody reads
    if (server_is_first) {
      play.twins.server_ends();
      play.twins.run();
      CHECK(play.twins.near.lan_ended);
    }
    play.twins.client_ends();
    if (!server_is_first) {
      play.twins.run();
      CHECK(play.twins.far.lan_ended);
      CHECK_FALSE(play.twins.near.lan_ended);
    }
    play.twins.server_ends();
    play.twins.run();
    for (const auto* half : {&play.twins.near, &play.twins.far}) {
      CHECK(half->lan_ended);
      CHECK(half->stream_ended);
    }
    CHECK_FALSE(play.twins.is_reset());
  }
}

// What the near half passed without the keys is the server's before it hears that the client has failed.
TEST_CASE("tls: an alert waits for what the client has said before, also if the client is reset") {
  const World world;
  const bool is_reset = GENERATE(false, true);
  kit::Watched near(
      std::make_unique<Near>(modules::Ends{}, modules::PlaintextReaders{}, std::make_shared<NearSite>()));
  static const config::FeatureTable table{kDescriptor.features};
  modules::Surroundings told;
  told.features.modules = config::ModuleFeatures::standard(table);
  near.module.on_surroundings({}, told);
  const std::string early = forged_record();  // which the near half cannot read
  near.from_lan({}, Slice::copy_of(std::as_bytes(std::span(early))));
  const Buffer secret(32, std::byte{7});
  const std::string name = "a.corp";
  const auto tell = [&](const tls::Message& message) {
    near.module.from_twin({}, twin::encode(message));
    near.collect();
  };
  tell(Keys{.suite = 0x1301,
            .client_secret = Slice::copy_of(secret),
            .server_secret = Slice::copy_of(secret),
            .name = Slice::copy_of(std::as_bytes(std::span(name)))});
  const std::array content{std::byte{2}, std::byte{kHasFailed}};
  const Bytes piece(content);
  Buffer alert;
  REQUIRE(RecordSealer(*RecordSuite::of(0x1301), secret, 1)
              .seal(ContentType::alert, std::span(&piece, 1), alert));
  near.from_lan({}, Slice::copy_of(alert));
  if (is_reset) near.module.lan_ended({}, modules::Ending::reset), near.collect();
  CHECK_FALSE(near.stream_ended);
  CHECK_FALSE(near.aborted);
  tell(Said{.bytes = Slice::copy_of(std::as_bytes(std::span(name)))});
  CHECK(near.stream_ended);
  CHECK(near.aborted == is_reset);
  REQUIRE(near.to_twin.size() >= 2);
  const auto* last = std::get_if<modules::ToTwin>(&near.to_twin[near.to_twin.size() - 2]);
  REQUIRE(last);
  const auto message = twin::decode<tls::Message>(last->message.bytes());
  REQUIRE((message && std::holds_alternative<Alerted>(*message)));
  CHECK(std::get<Alerted>(*message).description == kHasFailed);
}

TEST_CASE("tls: a server's fatal alert reaches the client after the server's data, without a reset") {
  const World world;
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(version, seed);
    Play play(world, world.real, "a.corp", seed, Play::Until::answered,
              [&](Play& p) { SSL_set_max_proto_version(p.client.ssl(), version); });
    REQUIRE(play.client.heard == play.answer);
    play.server->say("goodbye");
    play.server->fail();
    play.twins.server_sends(play.server->out());
    // Data that the client sends meanwhile is not delivered.
    const std::string before = play.twins.at_server;
    play.client.say("more");
    play.twins.client_sends(play.client.out());
    play.twins.run();
    CHECK(play.twins.at_server == before);
    CHECK(play.twins.near.lan_ended);
    play.twins.server_ends();
    play.twins.client_ends();
    play.twins.run();
    CHECK_FALSE(play.twins.is_reset());
    CHECK(play.client.heard == play.answer + "goodbye");
    CHECK(play.client.failed);
    CHECK_FALSE(play.client.closed);
    CHECK(play.client.heard_alert() == End::kFails);
    for (const auto* half : {&play.twins.near, &play.twins.far}) {
      CHECK(half->lan_ended);
      CHECK(half->stream_ended);
    }
  }
}

TEST_CASE(
    "tls: after the server's alert the near half waits for its client, whatever becomes of the stream") {
  const World world;
  for (const bool is_complete : {false, true}) {
    CAPTURE(is_complete);
    Play play(world, world.real, "a.corp", 1, Play::Until::answered);
    kit::Watched& near = play.twins.near;
    near.module.from_twin(play.twins.now, twin::encode(tls::Message(Alerted{.description = 80})));
    near.collect();
    CHECK_FALSE(near.lan_ended);  // what the server said before may be on its way
    if (is_complete) near.module.stream_ended(play.twins.now, modules::Ending::closed);
    near.module.stream_ended(play.twins.now, modules::Ending::reset);
    near.collect();
    CHECK(near.lan_ended == is_complete);
    CHECK(near.aborted == !is_complete);
  }
}

TEST_CASE("tls: an alert from the twin that would be a proper end, or a second one, resets") {
  const World world;
  for (const bool is_second : {false, true}) {
    Play play(world, world.real, "a.corp", 1, Play::Until::answered);
    for (const std::uint8_t description : {is_second ? kHasFailed : kCloses, kHasFailed}) {
      CHECK_FALSE(play.twins.far.aborted);
      play.twins.far.module.from_twin(play.twins.now,
                                      twin::encode(tls::Message(Alerted{.description = description})));
      play.twins.far.collect();
      if (!is_second) break;
    }
    CHECK(play.twins.far.aborted);
  }
  for (const std::uint8_t wrong : {kCloses, kCancels}) {
    Play play(world, world.real, "a.corp", 1, Play::Until::answered);
    play.twins.near.module.from_twin(play.twins.now,
                                     twin::encode(tls::Message(Alerted{.description = wrong})));
    play.twins.near.collect();
    CHECK(play.twins.near.aborted);
    CHECK(play.twins.near.to_lan.empty());
  }
  Play play(world, world.real, "a.corp", 1, Play::Until::answered);
  for (const bool is_second : {false, true}) {
    play.twins.near.module.from_twin(play.twins.now,
                                     twin::encode(tls::Message(Alerted{.description = kHasFailed})));
    play.twins.near.collect();
    CHECK(play.twins.near.aborted == is_second);
  }
}

}  // namespace
}  // namespace longhaul::tls
