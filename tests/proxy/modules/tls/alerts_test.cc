// SPDX-License-Identifier: Apache-2.0
// How a client or a server ends a connection with alerts (RFC 8446, section 6), some of which libssl does not
// send.
#include <array>
#include <catch2/catch.hpp>
#include <optional>

#include "crypto/tls_records.h"
#include "proxy/modules/tls/messages.h"
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

TEST_CASE("tls: a client that cancels alone has not closed, and one that reports a failure resets") {
  const World world;
  Alerting cancels(world, 1);
  cancels.alert(1, kCancels);
  cancels.play.twins.client_ends();
  cancels.play.twins.run();
  CHECK_FALSE(cancels.play.server->closed);
  CHECK(cancels.play.twins.far.lan_ended);

  Alerting fails(world, 1);
  fails.alert(2, kHasFailed);
  fails.play.twins.run();
  CHECK_FALSE(fails.play.server->closed);
  CHECK(fails.play.twins.is_reset());
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
