// SPDX-License-Identifier: Apache-2.0
// Certificates that are made at the far half, before clients that trust the operator's authority alone.
#include <catch2/catch.hpp>
#include <random>

#include "proxy/modules/tls/far.h"
#include "proxy/modules/tls/reasons.h"
#include "tests/proxy/modules/tls/names.h"
#include "tests/proxy/modules/tls/play.h"

namespace longhaul::tls {
namespace {

std::shared_ptr<const modules::Secrets> minting(const World& world, const std::string& listed, const Issued& mint) {
  std::vector<modules::ServerFiles> tables;
  tables.push_back(mint_table(listed, mint, world.authority));
  auto read = Policy::read(tables);
  REQUIRE(read.has_value());
  return *std::move(read);
}

// A client that trusts this authority and no other.
Play::Prepare trusting(const Issued& authority) {
  return [&authority](Play& play) {
    const Authorities trusted(X509_STORE_new());
    X509_STORE_add_cert(trusted.get(), authority.certificate.get());
    SSL_set1_verify_cert_store(play.client.ssl(), trusted.get());
  };
}

TEST_CASE("tls mint: a client that trusts the operator's authority alone is decrypted, whatever is cut or late") {
  const World world;
  for (const char* kind : {"EC", "RSA", "ED25519"}) {
    const Issued mint = issue("mint", nullptr, {.constraints = "permitted;DNS:corp", .key = kind});
    const Issued real = issue("a.corp", &world.authority, {.names = {"a.corp", "other.corp", "*.corp", "a.corp.com"}});
    const auto policy = minting(world, "a.corp", mint);
    for (unsigned seed = 0; seed < 20; ++seed) {
      CAPTURE(kind, seed);
      Play play(world, real, policy, seed, Play::Until::closed, trusting(mint));
      CHECK_FALSE(play.twins.is_reset());
      CHECK(play.server->heard == play.question);
      CHECK(play.client.heard == play.answer);
      CHECK(play.client.closed);
      CHECK(play.redials == 0);
      REQUIRE(play.seen());
      CHECK(names_of(play.seen()) == std::vector<std::string>{"a.corp"});
      CHECK(play.client.got_status().empty());  // what the authority of the server's says is not of this one
      CHECK(std::string(play.twins.far.module.detail()).find("TLS 1.3 for a.corp, decrypted, certificate minted") == 0);
    }
  }
}

TEST_CASE("tls mint: a client with TLS 1.2 is decrypted, and one without a suite for the leaf's key passes") {
  const World world;
  const Issued mint = issue("mint"), real = issue("a.corp", &world.authority, {.key = "RSA"});
  const auto policy = minting(world, "a.corp", mint);
  const auto with = [&](const Issued& trusted, const char* suites) -> Play::Prepare {
    return [=, &trusted](Play& play) {
      trusting(trusted)(play);
      SSL_set_max_proto_version(play.client.ssl(), TLS1_2_VERSION);
      SSL_set_cipher_list(play.client.ssl(), suites);
    };
  };
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    Play play(world, real, policy, seed, Play::Until::closed, with(mint, "ECDHE-ECDSA-AES128-GCM-SHA256"));
    CHECK(play.client.heard == play.answer);
    CHECK(play.client.closed);
    CHECK_FALSE(play.sees(real));
  }
  Play play(world, real, policy, 1, Play::Until::closed, with(world.authority, "ECDHE-RSA-AES128-GCM-SHA256"));
  CHECK(play.client.heard == play.answer);
  CHECK(play.sees(real));
  CHECK(play.twins.far.module.reason() == modules::Reason(reasons::tls_version));
}

TEST_CASE("tls mint: intermediate authorities are sent along, and the root is not") {
  const World world;
  const Issued root = issue("root"), mint = issue("mint", &root, {.is_authority = true, .constraints = "permitted;DNS:a.corp"});
  std::vector<modules::ServerFiles> tables;
  tables.push_back(mint_table("a.corp", mint, world.authority));
  tables[0].files[0] = file("certificate", mint.certificate_pem() + root.certificate_pem());
  const auto policy = Policy::read(tables);
  REQUIRE(policy.has_value());
  CHECK((*policy)->warnings().empty());
  Play play(world, world.real, *policy, 1, Play::Until::closed, trusting(root));
  CHECK(play.client.heard == play.answer);
  CHECK(sk_X509_num(SSL_get_peer_cert_chain(play.client.ssl())) == 2);
}

TEST_CASE("tls mint: a server that does not verify, and one for which no certificate can be made, is the client's own") {
  const World world;
  const Issued mint = issue("mint"), other_authority = issue("other");
  const Issued expired = issue("mint", nullptr, {.begins = -7200, .ends = -60});
  const Issued elsewhere = issue("mint", nullptr, {.constraints = "permitted;DNS:com"});
  const Issued forged = issue("a.corp", &other_authority), other_name = issue("b.corp", &world.authority);
  const Issued by_mint = issue("a.corp", &mint);  // signing for clients makes it no authority for servers
  const Issued old = issue("a.corp", &world.authority, {.has_alternative_names = false});
  const Issued late = issue("a.corp", &world.authority, {.begins = -7200, .ends = -60});
  struct Case {
    const Issued *mint, *server;
    modules::Reason reason;
    int redials;
  };
  for (const Case& each : {Case{&mint, &forged, reasons::tls_server_refused, 1}, Case{&mint, &other_name, reasons::tls_server_refused, 1},
                           Case{&mint, &by_mint, reasons::tls_server_refused, 1}, Case{&mint, &late, reasons::tls_server_refused, 1},
                           Case{&mint, &old, reasons::tls_not_minted, 1}, Case{&elsewhere, &world.real, reasons::tls_not_minted, 1},
                           Case{&expired, &world.real, reasons::tls_not_minted, 0}})
    for (unsigned seed = 0; seed < 10; ++seed) {
      CAPTURE(std::string(each.reason->code), seed);
      Play play(world, *each.server, minting(world, "a.corp", *each.mint), seed, Play::Until::closed,
                [](Play& p) { SSL_set_verify(p.client.ssl(), SSL_VERIFY_NONE, nullptr); });
      CHECK_FALSE(play.twins.is_reset());
      CHECK(play.redials == each.redials);
      CHECK(play.sees(*each.server));
      CHECK(play.client.heard == play.answer);
      CHECK(play.server->heard == play.question);
      CHECK(play.heard_by_server.find(play.client_says_first) != std::string::npos);
      CHECK(play.twins.far.module.reason() == each.reason);
    }
}

// Whatever server, table and authority say: the client sees the server's own certificate, or one with names that the
// server's verified certificate and the table have.
TEST_CASE("tls mint: no name that the server or the table does not have") {
  const World world;
  const Issued other_authority = issue("other");
  std::mt19937 random;
  const std::vector<std::string> certified{"a.corp", "b.corp", "*.corp", "x.a.corp", "*.a.corp", "a.com", "corp"};
  const std::vector<std::string> tables{"a.corp", "*.corp", "*.a.corp", "b.corp", "*.com"};
  const std::vector<std::string> constraints{"", "permitted;DNS:corp", "permitted;DNS:a.corp", "permitted;DNS:com", "excluded;DNS:a.corp"};
  int minted = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    random.seed(seed);
    Profile profile;
    for (const std::string& name : certified)
      if (random() % 2 == 0) profile.names.push_back(name);
    const bool is_known = random() % 4 != 0;
    const Issued server = issue("a.corp", is_known ? &world.authority : &other_authority, profile);
    const Issued mint = issue("mint", nullptr, {.constraints = constraints[random() % constraints.size()], .ends = random() % 8 == 0 ? -60 : 3600});
    const std::string listed = tables[random() % tables.size()];
    Play play(world, server, minting(world, listed, mint), seed, Play::Until::closed,
              [](Play& p) { SSL_set_verify(p.client.ssl(), SSL_VERIFY_NONE, nullptr); });
    CHECK(play.client.heard == play.answer);
    REQUIRE(play.seen());
    if (play.sees(server)) continue;
    ++minted;
    CHECK(is_known);
    const auto names = names_of(play.seen());
    CHECK_FALSE(names.empty());
    for (const std::string& name : names) {
      CAPTURE(name);
      const std::string asked = name.starts_with('*') ? "any" + name.substr(1) : name;
      CHECK(config::matches(*config::parse_name_pattern(listed), asked));
      CHECK(X509_check_host(server.certificate.get(), asked.data(), asked.size(), 0, nullptr) == 1);
    }
  }
  CHECK(minted > 10);
}

TEST_CASE("tls mint: who resumes is decrypted only while a certificate could be made for the server") {
  const World world;
  const Issued mint = issue("mint"), old = issue("a.corp", &world.authority, {.has_alternative_names = false});
  const auto policy = minting(world, "a.corp", mint);
  const auto& entry = *static_cast<const Policy&>(*policy).find({}, "a.corp", {});
  for (const bool has_name : {true, false}) {
    kit::Watched far(std::make_unique<Far>(modules::Ends{}, modules::Address{}, [&] {
      auto site = std::make_shared<Site>();
      site->policy = std::static_pointer_cast<const Policy>(policy);
      return site;
    }()));
    const config::FeatureTable features{kDescriptor.features};
    modules::Surroundings told;
    told.features.modules = config::ModuleFeatures::standard(features);
    far.module.on_surroundings({}, told);
    const std::string name = "a.corp";
    const auto slice = [](const std::string& text) { return Slice::copy_of(std::as_bytes(std::span(text))); };
    far.module.from_twin({}, twin::encode(Message(Resumed{.name = slice(name), .entry = slice(entry.stamp), .protocol = {}})));
    far.collect();
    const Context context = world.server_context(has_name ? world.real : old);
    End server(context.get(), false);
    for (int i = 0; i < 4 && !far.aborted; ++i) {
      std::string said;
      for (const Slice& each : std::exchange(far.to_lan, {})) said.append(reinterpret_cast<const char*>(each.bytes().data()), each.size());
      server.take(said);
      if (const std::string answer = server.out(); !answer.empty()) far.from_lan({}, slice(answer));
    }
    CHECK(server.is_up == has_name);
    CHECK(far.aborted == !has_name);
    if (has_name) CHECK(far.module.detail() == "TLS for a.corp, decrypted, resumed, certificate minted, [[tls_server]] 1");
    CHECK(far.module.reason() == (has_name ? modules::Reason{} : modules::Reason(reasons::tls_not_minted)));
  }
}

}  // namespace
}  // namespace longhaul::tls
