// SPDX-License-Identifier: Apache-2.0
// Certificates made with an authority's key that another device holds: one signature for each certificate of
// a server, for which clients wait, or without which they get the server itself.
#include "proxy/modules/tls/far.h"
#include "proxy/modules/tls/reasons.h"
#include "tests/proxy/modules/tls/device.h"
#include "tests/proxy/modules/tls/play.h"

namespace longhaul::tls {
namespace {

struct HeldMint {
  explicit HeldMint(const World& world, const char* kind = "EC")
      : authority(issue("mint", nullptr, {.key = kind})), device(std::make_shared<Device>(authority.key)) {
    std::vector<modules::ServerFiles> tables;
    tables.push_back(mint_table("a.corp", authority, world.authority));
    tables[0].files[1] = {.key = "key", .name = "pkcs11:token=t;object=o", .content = {}, .held = device};
    auto read = Policy::read(tables);
    REQUIRE(read.has_value());
    policy = *std::move(read);
  }
  // A client trusts both, and sees which one it gets.
  Play::Prepare prepare(
      const World& world, std::function<void(Play&)> more = [](Play&) {}) const {
    return [this, &world, more = std::move(more)](Play& play) {
      const Authorities trusted(X509_STORE_new());
      X509_STORE_add_cert(trusted.get(), authority.certificate.get());
      X509_STORE_add_cert(trusted.get(), world.authority.certificate.get());
      SSL_set1_verify_cert_store(play.client.ssl(), trusted.get());
      more(play);
    };
  }

  Issued authority;
  std::shared_ptr<Device> device;
  std::shared_ptr<const modules::Secrets> policy;
};

// Lets time pass at the far half, as the daemon's loop does.
void pass(Play& play, link::Duration time) {
  play.twins.now += time;
  play.twins.far.module.on_timeout(play.twins.now);
  play.twins.far.collect();
  play.twins.run();
}

bool is_minted(Play& play, const HeldMint& mint) {
  return play.seen() && X509_NAME_cmp(X509_get_issuer_name(play.seen()),
                                      X509_get_subject_name(mint.authority.certificate.get())) == 0;
}

}  // namespace

TEST_CASE("tls held mint: a device signs a certificate once, and clients are decrypted") {
  const World world;
  for (const char* kind : {"EC", "RSA"}) {
    const HeldMint mint(world, kind);
    for (unsigned seed = 1; seed <= 10; ++seed) {
      CAPTURE(kind, seed);
      Play play(world, world.real, mint.policy, seed, Play::Until::closed, mint.prepare(world));
      CHECK_FALSE(play.twins.is_reset());
      CHECK(play.client.heard == play.answer);
      CHECK(play.server->heard == play.question);
      CHECK(is_minted(play, mint));
      CHECK(play.redials == 0);
    }
    CHECK(mint.device->asked == 1);  // for all of them: the certificate is kept
  }
}

TEST_CASE("tls held mint: clients that come together wait for one signature") {
  const World world;
  const HeldMint mint(world);
  mint.device->answers_later = true;
  Play one(world, world.real, mint.policy, 1, Play::Until::closed, mint.prepare(world));
  Play other(world, world.real, mint.policy, 2, Play::Until::closed, mint.prepare(world));
  CHECK_FALSE(one.client.is_up);
  REQUIRE(mint.device->later.size() == 1);
  mint.device->answer();
  for (Play* play : {&one, &other}) {
    pass(*play, std::chrono::milliseconds(1));
    CHECK(play->client.heard == play->answer);
    CHECK(is_minted(*play, mint));
  }
  CHECK(mint.device->asked == 1);
}

TEST_CASE("tls held mint: without the authority's key the client is served by the server itself") {
  const World world;
  for (const std::string how : {"gone", "full", "silent"}) {
    CAPTURE(how);
    const HeldMint mint(world);
    mint.device->failure = how == "gone" ? "the token is gone" : "";
    mint.device->is_full = how == "full";
    mint.device->answers_later = how == "silent";
    Play play(world, world.real, mint.policy, 3, Play::Until::closed, mint.prepare(world));
    if (how == "silent") {
      CHECK_FALSE(play.client.is_up);
      pass(play, SlowLeaf::kSlowest - std::chrono::seconds(1));
      CHECK_FALSE(play.client.is_up);
      pass(play, std::chrono::seconds(2));
    }
    CHECK(play.client.heard == play.answer);
    CHECK(play.sees(world.real));
    CHECK(play.redials == 1);
    CHECK(play.twins.far.module.reason() == modules::Reason(reasons::tls_key_unavailable));
    const std::string why = how == "gone"   ? "the token is gone"
                            : how == "full" ? "too many handshakes are waiting for the token"
                                            : "the token has not signed within five seconds";
    CHECK(std::string(play.twins.far.module.detail()).find(why) != std::string::npos);
    mint.device->later.clear();  // which has the policy, which has the device
  }
}

TEST_CASE(
    "tls held mint: flows may end while the device signs, and what it makes counts in the modules' memory") {
  const World world;
  const HeldMint mint(world);
  mint.device->answers_later = true;
  {
    Play play(world, world.real, mint.policy, 5, Play::Until::closed, mint.prepare(world));
    REQUIRE(mint.device->later.size() == 1);
  }
  mint.device->answer();
  CHECK(mint.device->later.empty());

  const auto memory = std::make_shared<modules::Memory>(1 << 20);
  const auto policy = std::static_pointer_cast<const Policy>(mint.policy);
  const auto begun = policy->find({}, "a.corp", {})
                         ->mint->begin(link::TimePoint(std::chrono::hours(1)), policy,
                                       world.real.certificate.get(), "a.corp", memory);
  REQUIRE(begun);
  CHECK_FALSE(begun->is_done());
  CHECK(memory->used_bytes() > 0);
  mint.device->later.clear();
}

}  // namespace longhaul::tls
