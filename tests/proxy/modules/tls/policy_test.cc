// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/policy.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/tls/certificates.h"

namespace longhaul::tls {
namespace {

modules::Address host_address(int last) {
  modules::Address made{};
  made[10] = made[11] = std::byte{0xff};
  made[12] = std::byte{10}, made[15] = std::byte(last);
  return made;
}

TEST_CASE("tls policy: tables that add the same authorities share them, and others do not") {
  const Issued authority = issue("ca"), another = issue("ca"), server = issue("a.corp", &authority);
  std::vector<modules::ServerFiles> tables;
  for (const Issued* added : {&authority, &another, &authority}) {
    tables.push_back(table("a.corp", server, *added));
    tables.back().addresses = {{.address = host_address(static_cast<int>(tables.size())), .prefix_length = 128}};
  }
  const auto read = Policy::read(tables);
  REQUIRE(read.has_value());
  const auto& policy = static_cast<const Policy&>(**read);
  const auto trusted = [&](int table) {
    return SSL_CTX_get_cert_store(policy.find(host_address(table), "a.corp", host_address(9))->to_server.get());
  };
  CHECK(trusted(1) == trusted(3));
  CHECK(trusted(1) != trusted(2));
}

TEST_CASE("tls policy: address, name and client decide together") {
  const Issued authority = issue("ca"), server = issue("a.corp", &authority);
  modules::ServerFiles exact = table("a.corp", server, authority), below = table("*.corp", server, authority);
  exact.addresses = {{.address = host_address(2), .prefix_length = 128}};
  below.addresses = {{.address = host_address(3), .prefix_length = 128}};
  exact.clients = {{.address = host_address(7), .prefix_length = 128}};
  std::vector<modules::ServerFiles> tables;
  tables.push_back(std::move(exact)), tables.push_back(std::move(below));
  const auto read = Policy::read(tables);
  REQUIRE(read.has_value());
  const auto& policy = static_cast<const Policy&>(**read);

  CHECK(policy.lists(host_address(2)));
  CHECK(policy.lists(host_address(3)));
  CHECK_FALSE(policy.lists(host_address(4)));
  CHECK(policy.find(host_address(2), "a.corp", host_address(7)));
  CHECK_FALSE(policy.find(host_address(2), "a.corp", host_address(8)));
  CHECK_FALSE(policy.find(host_address(2), "b.corp", host_address(7)));
  CHECK_FALSE(policy.find(host_address(3), "corp", host_address(7)));
  CHECK_FALSE(policy.find(host_address(3), "acorp", host_address(7)));
  CHECK(policy.find(host_address(3), "x.y.corp", host_address(7)));
  CHECK_FALSE(policy.find(host_address(4), "a.corp", host_address(7)));
  CHECK(policy.lines().size() == 2);
  // The certificate is not one for every name below corp.
  CHECK(policy.warnings().size() == 1);
}

TEST_CASE("tls policy: files that do not fit are named") {
  const Issued authority = issue("ca"), server = issue("a.corp", &authority), other = issue("a.corp", &authority);
  const auto error = [&](std::size_t which, const std::string& content) {
    std::vector<modules::ServerFiles> tables;
    tables.push_back(table("a.corp", server, authority));
    tables[0].files[which] = file(tables[0].files[which].key, content);
    const auto read = Policy::read(tables);
    return read ? std::string() : read.error().message;
  };
  CHECK(error(0, "nothing") == "certificate.pem: it contains no certificate in PEM format.");
  CHECK(error(1, "nothing") == "key.pem: it contains no private key in PEM format without a passphrase.");
  CHECK(error(1, other.key_pem()) == "key.pem: it is not the key of certificate.pem.");
  CHECK(error(2, "") == "ca.pem: it contains no certificate in PEM format.");
  CHECK(error(1, server.key_pem()).empty());
}

TEST_CASE("tls policy: where certificates are minted, the certificate is an authority's, and better one that is limited to names") {
  const Issued authority = issue("ca"), server = issue("a.corp", &authority), other = issue("mint");
  const auto read = [&](const Issued& mint, const Issued& with_key, const std::string& name = "a.corp") {
    std::vector<modules::ServerFiles> tables;
    tables.push_back(mint_table(name, mint, authority));
    tables[0].files[1] = file("key", with_key.key_pem());
    return Policy::read(tables);
  };
  const auto error = [&](const Issued& mint, const Issued& with_key) {
    const auto policy = read(mint, with_key);
    return policy ? std::string() : policy.error().message;
  };
  const Issued limited = issue("mint", nullptr, {.constraints = "permitted;DNS:a.corp"});
  const Issued for_mail = issue("mint", nullptr, {.purposes = "emailProtection"});
  CHECK(error(server, server) ==
        "certificate.pem: its first certificate is not that of a CA (CA:TRUE), which mode = \"mint\" "
        "requires.");
  CHECK(error(limited, other) == "key.pem: it is not the key of certificate.pem.");
  CHECK(error(for_mail, for_mail) ==
        "certificate.pem: its first certificate is not allowed to sign for servers (extendedKeyUsage).");

  const auto warnings = [&](const Issued& mint, const std::string& name = "a.corp") { return (*read(mint, mint, name))->warnings(); };
  CHECK(warnings(limited).empty());
  REQUIRE(warnings(other).size() == 1);
  CHECK(warnings(other)[0].starts_with("certificate.pem is not limited to names (nameConstraints, permitted;DNS): "));
  // To names, that is, and not to something else.
  const Issued by_address = issue("mint", nullptr, {.constraints = "permitted;IP:10.0.0.0/255.0.0.0"});
  CHECK(warnings(by_address).size() == 1);
  REQUIRE(warnings(limited, "*.b.corp").size() == 1);
  CHECK(warnings(limited, "*.b.corp")[0] ==
        "certificate.pem is not allowed to sign for *.b.corp (nameConstraints): connections to it stay "
        "encrypted.");
  const Issued expired = issue("mint", nullptr, {.constraints = "permitted;DNS:a.corp", .begins = -7200, .ends = -3600});
  REQUIRE(warnings(expired).size() == 1);
  CHECK(warnings(expired)[0].starts_with("certificate.pem: the minting CA expired on "));

  const auto lines = (*read(limited, limited))->lines();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("TLS of a.corp at any: certificates minted by a CA that is valid until "));
  // Sessions of one mode are not valid in the other.
  std::vector<modules::ServerFiles> plain;
  plain.push_back(table("a.corp", limited, authority));
  const auto stamp = [](const std::shared_ptr<const modules::Secrets>& policy) {
    return static_cast<const Policy&>(*policy).find({}, "a.corp", {})->stamp;
  };
  CHECK(stamp(*Policy::read(plain)) != stamp(*read(limited, limited)));
}

TEST_CASE("tls policy: names are compared in their plain form") {
  CHECK(plain_name("Intranet.Corp.") == "intranet.corp");
  for (const char* bad : {"", ".", "a..b", ".a", "a b", "a/b", "\x01"}) CHECK(plain_name(bad).empty());
  CHECK(plain_name(std::string(254, 'a')).empty());
}

}  // namespace
}  // namespace longhaul::tls
