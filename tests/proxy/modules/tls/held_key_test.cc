// SPDX-License-Identifier: Apache-2.0
// Tables whose key another device holds: here one that a test holds, which signs at once, later, or never.
#include "proxy/modules/tls/reasons.h"
#include "proxy/modules/tls/slow_answer.h"
#include "tests/proxy/modules/tls/device.h"
#include "tests/proxy/modules/tls/play.h"

namespace longhaul::tls {
namespace {

TEST_CASE("tls held key: a connection is decrypted with a key that another device holds") {
  const World world;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const auto device = std::make_shared<Device>(world.shown.key);
    Play play(world, world.real, held_policy(world, device), seed, Play::Until::closed, [&](Play& before) {
      if (seed % 2 == 0) SSL_CTX_set_max_proto_version(before.client_context.get(), TLS1_2_VERSION);
    });
    CHECK(play.client.heard == play.answer);
    CHECK(play.server->heard == play.question);
    CHECK(play.sees(world.shown));
    CHECK(play.twins.far.module.reason() == modules::Reason{});
    CHECK(device->begun == 1);
    CHECK(device->has_public_key);
    CHECK(device->asked > 0);
  }
}

TEST_CASE("tls held key: a client that must offer another key share is decrypted, too") {
  const World world;
  const auto device = std::make_shared<Device>(world.shown.key);
  Play play(world, world.real, held_policy(world, device), 1, Play::Until::closed, [](Play& before) {
    // Its share is of the first group, which the far half does not have: HelloRetryRequest.
    SSL_CTX_set1_groups_list(before.client_context.get(), "X448:P-384");
    SSL_CTX_set1_groups_list(before.server_context.get(), "P-384");
  });
  CHECK(play.client.heard == play.answer);
  CHECK(play.sees(world.shown));
}

TEST_CASE("tls held key: while the key does not answer, the client waits; then the connection is decrypted") {
  const World world;
  const auto device = std::make_shared<Device>(world.shown.key);
  device->answers_later = true;
  Play play(world, world.real, held_policy(world, device), 3);
  auto& far = play.twins.far;
  int steps = 0;
  while (far.module.next_timeout() && ++steps < 100) {
    CHECK(play.client.heard.empty());
    if (steps % 3 == 0 && !device->later.empty()) device->answer();
    play.twins.now += std::chrono::milliseconds(2);
    far.module.on_timeout(play.twins.now), far.collect();
    play.twins.run();
  }
  CHECK(play.client.heard == play.answer);
  CHECK(play.sees(world.shown));
}

TEST_CASE("tls held key: without the key the client is served by the server itself") {
  const World world;
  for (const int how : {0, 1, 2}) {
    CAPTURE(how);
    const auto device = std::make_shared<Device>(world.shown.key);
    device->failure = how == 0 ? "the token is gone" : "";
    device->is_full = how == 1;
    device->answers_later = how == 2;
    Play play(world, world.real, held_policy(world, device), 7);
    if (how == 2) {
      REQUIRE(play.twins.far.module.next_timeout());
      play.twins.now += std::chrono::seconds(6);
      play.twins.far.module.on_timeout(play.twins.now), play.twins.far.collect();
      play.twins.run();
      // What comes after it is not waited for changes nothing.
      device->answer();
      play.twins.run();
    }
    CHECK(play.sees(world.real));
    CHECK(play.client.heard == play.answer);
    CHECK(play.redials == 1);
    CHECK(play.twins.far.module.reason() == modules::Reason(reasons::tls_key_unavailable));
  }
}

TEST_CASE("tls held key: the connection may end while the device signs") {
  const World world;
  const auto device = std::make_shared<Device>(world.shown.key);
  device->answers_later = true;
  {
    Play play(world, world.real, held_policy(world, device), 5);
    REQUIRE(device->later.size() == 1);
  }
  device->answer();
  CHECK(device->later.empty());
}

TEST_CASE("tls held key: a handshake counts in the modules' memory until the device has finished with it") {
  const World world;
  const auto device = std::make_shared<Device>(world.shown.key);
  device->answers_later = true;
  const auto policy = std::static_pointer_cast<const Policy>(held_policy(world, device));
  const Entry* const entry = policy->find({}, "a.corp", {});
  REQUIRE(entry);
  const auto memory = std::make_shared<modules::Memory>(1 << 20);
  Asked user;
  auto answer =
      std::make_shared<SlowAnswer>(policy, *entry, std::make_unique<Leg>(entry->to_client.get(), user),
                                   TrafficSecrets(), SlowAnswer::Said{}, memory);
  REQUIRE(answer->begin());
  answer.reset();  // the flow has ended
  CHECK(memory->used_bytes() == SlowAnswer::kBytes);
  device->later.clear();
  CHECK(memory->used_bytes() == 0);
}

TEST_CASE("tls held key: a table says what its key can be used for") {
  const World world;
  const auto error = [&](const Issued& shown, bool mints) {
    const auto device = std::make_shared<Device>(world.shown.key);
    std::vector<modules::ServerFiles> tables;
    tables.push_back(held_table(world, device));
    tables[0].files[0] = file("certificate", shown.certificate_pem());
    if (mints) tables[0].chosen.emplace_back("mode", "mint");
    const auto read = Policy::read(tables);
    return read ? std::string() : read.error().message;
  };
  CHECK(error(world.shown, false).empty());
  CHECK(error(issue("a.corp", &world.authority, {.key = "RSA"}), false).empty());
  CHECK(error(issue("a.corp", &world.authority, {.key = "ED25519"}), false) ==
        "pkcs11:token=t;object=o: a PKCS#11 token can sign only for certificates with an RSA or EC key.");
  CHECK(error(world.authority, true).empty());
  const auto device = std::make_shared<Device>(world.shown.key);
  device->failure = "the token is gone";
  const auto policy = held_policy(world, device);
  CHECK(policy->try_out() == std::vector<std::string>{"TLS of a.corp: the key in [[tls_server]] is not available: the token is gone. "
                                                      "Connections pass encrypted until it is."});
  CHECK(policy->lines()[0].ends_with(", key in pkcs11:token=t;object=o"));
}

}  // namespace
}  // namespace longhaul::tls
