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
  CHECK(error(0, "nothing") == "certificate.pem: it has no certificate in PEM form.");
  CHECK(error(1, "nothing") == "key.pem: it has no private key in PEM form without a passphrase.");
  CHECK(error(1, other.key_pem()) == "key.pem: it is not the key of certificate.pem.");
  CHECK(error(2, "") == "ca.pem: it has no certificate in PEM form.");
  CHECK(error(1, server.key_pem()).empty());
}

TEST_CASE("tls policy: names are compared in their plain form") {
  CHECK(plain_name("Intranet.Corp.") == "intranet.corp");
  for (const char* bad : {"", ".", "a..b", ".a", "a b", "a/b", "\x01"}) CHECK(plain_name(bad).empty());
  CHECK(plain_name(std::string(254, 'a')).empty());
}

}  // namespace
}  // namespace longhaul::tls
