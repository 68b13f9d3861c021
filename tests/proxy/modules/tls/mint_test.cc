// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/mint.h"

#include <catch2/catch.hpp>
#include <ctime>
#include <random>
#include <set>

#include "proxy/modules/tls/leaf_names.h"
#include "tests/proxy/modules/tls/names.h"

namespace longhaul::tls {
namespace {

using Names = std::set<std::string>;

std::vector<config::NamePattern> listed(std::initializer_list<const char*> texts) {
  std::vector<config::NamePattern> all;
  for (const char* text : texts) all.push_back(*config::parse_name_pattern(text));
  return all;
}

Names common(std::initializer_list<const char*> of_server, const std::vector<config::NamePattern>& table) {
  Names names;
  for (const char* name : of_server) add_common_names(name, table, names);
  return names;
}

Certificate reference(const Issued& issued) {
  X509_up_ref(issued.certificate.get());
  return Certificate(issued.certificate.get());
}

std::vector<Certificate> chain_of(std::initializer_list<const Issued*> issued) {
  std::vector<Certificate> chain;
  for (const Issued* each : issued) chain.push_back(reference(*each));
  return chain;
}

config::TextResult<std::unique_ptr<Mint>> make(std::initializer_list<const Issued*> issued, std::vector<config::NamePattern> table) {
  EVP_PKEY* const key = (*issued.begin())->key.get();
  EVP_PKEY_up_ref(key);
  return Mint::make(chain_of(issued), Key(key), "mint.crt", std::move(table));
}

constexpr modules::TimePoint kNow{std::chrono::hours(1)};

TEST_CASE("tls mint: a leaf has the names that server and table have in common") {
  CHECK(common({"a.corp", "b.corp"}, listed({"a.corp"})) == Names{"a.corp"});
  CHECK(common({"A.Corp", "x.a.corp", "corp"}, listed({"*.corp"})) == Names{"a.corp", "x.a.corp"});
  CHECK(common({"*.a.corp"}, listed({"*.corp"})) == Names{"*.a.corp"});
  CHECK(common({"*.a.corp"}, listed({"*.a.corp", "a.corp"})) == Names{"*.a.corp"});
  CHECK(common({"*.a.corp"}, listed({"b.a.corp", "c.b.a.corp", "a.corp"})) == Names{"b.a.corp"});
  CHECK(common({"*.a.corp"}, listed({"*.b.a.corp"})) == Names{});
  // Not host names, wildcards for a part of a label, for a later label, and for a whole top-level domain.
  CHECK(common({"w*.a.corp", "*w.a.corp", "a.*.corp", "*.*.corp", "*", "*.", "*.corp", "a.a.corp.", "a b.corp", ""}, listed({"*.corp"})) == Names{});
  Names names;
  add_common_names(std::string_view("a.corp\0.evil.com", 16), listed({"*.com", "*.corp", "a.corp"}), names);
  CHECK(names.empty());
}

TEST_CASE("tls mint: a leaf answers for a name exactly if server and table do") {
  std::mt19937 random;
  const std::vector<std::string> labels{"a", "b", "c"};
  const auto name = [&](int depth) {
    std::string made = "corp";
    for (int i = 0; i < depth; ++i) made = labels[random() % labels.size()] + '.' + made;
    return made;
  };
  const auto answers = [](const std::string& certified, const std::string& asked) {
    if (!certified.starts_with("*.")) return certified == asked;
    const auto dot = asked.find('.');
    return dot != std::string::npos && asked.substr(dot) == certified.substr(1);
  };
  for (unsigned seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    random.seed(seed);
    std::vector<std::string> server;
    std::vector<config::NamePattern> table;
    for (int i = 0; i < 3; ++i) {
      server.push_back((random() % 2 ? "*." : "") + name(1 + static_cast<int>(random() % 2)));
      table.push_back(*config::parse_name_pattern((random() % 2 ? "*." : "") + name(static_cast<int>(random() % 3))));
    }
    Names leaf;
    for (const std::string& each : server) add_common_names(each, table, leaf);
    for (int i = 0; i < 100; ++i) {
      const std::string asked = name(1 + static_cast<int>(random() % 3));
      const auto by = [&](const auto& names) { return std::ranges::any_of(names, [&](const auto& each) { return answers(each, asked); }); };
      const bool is_listed = std::ranges::any_of(table, [&](const auto& each) { return config::matches(each, asked); });
      CHECK(by(leaf) == (by(server) && is_listed));
    }
  }
}

TEST_CASE("tls mint: what a leaf says") {
  for (const char* kind : {"EC", "RSA", "ED25519"}) {
    CAPTURE(kind);
    const Issued authority = issue("mint", nullptr, {.constraints = "permitted;DNS:corp", .ends = 3600L * 24 * 365, .key = kind});
    const Issued real = issue("ca"), server = issue("a.corp", &real, {.names = {"a.corp", "other.com", "x.corp"}, .ends = 3600L * 24 * 90});
    const auto mint = make({&authority}, listed({"*.corp"}));
    REQUIRE(mint.has_value());
    CHECK((*mint)->warnings("mint.crt").empty());
    const auto made = (*mint)->leaf(kNow, server.certificate.get(), "a.corp");
    REQUIRE(made.leaf);
    X509* const leaf = made.leaf.get();
    CHECK(names_of(leaf) == std::vector<std::string>{"a.corp", "x.corp"});
    CHECK(X509_NAME_entry_count(X509_get_subject_name(leaf)) == 0);
    CHECK(X509_verify(leaf, authority.key.get()) == 1);
    CHECK(X509_check_private_key(leaf, (*mint)->key()) == 1);
    CHECK(X509_get_extended_key_usage(leaf) == XKU_SSL_SERVER);
    CHECK(X509_get_key_usage(leaf) == KU_DIGITAL_SIGNATURE);
    CHECK(X509_check_ca(leaf) == 0);
    CHECK(X509_get_version(leaf) == X509_VERSION_3);
    CHECK(X509_check_issued(authority.certificate.get(), leaf) == X509_V_OK);
    int days = 0, seconds = 0;
    ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(leaf));
    CHECK((days == 6 || days == 7));
    const ASN1_INTEGER* const serial = X509_get0_serialNumber(leaf);
    CHECK((ASN1_STRING_type(serial) == V_ASN1_INTEGER && ASN1_STRING_length(serial) == 20));
  }
}

TEST_CASE("tls mint: a leaf is valid no longer than the server's certificate or the authority's") {
  const Issued real = issue("ca");
  const auto ends_with = [](const Issued& authority, const Issued& server, const Issued& expected) {
    const auto mint = make({&authority}, listed({"a.corp"}));
    const auto made = (*mint)->leaf(kNow, server.certificate.get(), "a.corp");
    REQUIRE(made.leaf);
    CHECK(ASN1_TIME_compare(X509_get0_notAfter(made.leaf.get()), X509_get0_notAfter(expected.certificate.get())) == 0);
    CHECK(ASN1_TIME_compare(X509_get0_notBefore(made.leaf.get()), X509_get0_notBefore(authority.certificate.get())) >= 0);
    CHECK(ASN1_TIME_compare(X509_get0_notBefore(made.leaf.get()), X509_get0_notBefore(server.certificate.get())) >= 0);
  };
  const Issued day = issue("mint", nullptr, {.ends = 3600L * 24}), year = issue("mint", nullptr, {.ends = 3600L * 24 * 365});
  const Issued hour = issue("a.corp", &real, {.ends = 3600}), month = issue("a.corp", &real, {.ends = 3600L * 24 * 30});
  ends_with(year, hour, hour);
  ends_with(day, hour, hour);
  ends_with(day, month, day);
}

TEST_CASE("tls mint: a leaf has its times in the form that clients accept, whatever form the server's have") {
  const Issued authority = issue("mint"), real = issue("ca"), server = issue("a.corp", &real);
  ASN1_GENERALIZEDTIME* const end = ASN1_GENERALIZEDTIME_adj(nullptr, ::time(nullptr), 0, 3600);
  X509_set1_notAfter(server.certificate.get(), end);
  const auto made = (*make({&authority}, listed({"a.corp"})))->leaf(kNow, server.certificate.get(), "a.corp");
  REQUIRE(made.leaf);
  CHECK(ASN1_STRING_type(X509_get0_notAfter(made.leaf.get())) == V_ASN1_UTCTIME);  // RFC 5280, section 4.1.2.5
  CHECK(ASN1_TIME_compare(X509_get0_notAfter(made.leaf.get()), end) == 0);
  ASN1_GENERALIZEDTIME_free(end);
}

TEST_CASE("tls mint: one leaf for each certificate of a server, for a day, and a bounded number of them") {
  const Issued authority = issue("mint"), real = issue("ca"), server = issue("a.corp", &real), other = issue("a.corp", &real);
  const auto mint = make({&authority}, listed({"a.corp"}));
  const auto leaf_of = [&](const Issued& issued, modules::TimePoint now) {
    auto made = (*mint)->leaf(now, issued.certificate.get(), "a.corp");
    REQUIRE(made.leaf);
    return std::move(made.leaf);
  };
  const auto same = [](const Certificate& a, const Certificate& b) { return X509_cmp(a.get(), b.get()) == 0; };
  const Certificate first = leaf_of(server, kNow);
  CHECK(same(first, leaf_of(server, kNow + std::chrono::hours(23))));
  CHECK_FALSE(same(first, leaf_of(other, kNow)));
  const Certificate later = leaf_of(server, kNow + std::chrono::hours(24));
  CHECK_FALSE(same(first, later));
  CHECK(ASN1_INTEGER_cmp(X509_get0_serialNumber(first.get()), X509_get0_serialNumber(later.get())) != 0);
  CHECK(same(later, leaf_of(server, kNow + std::chrono::hours(25))));
  for (std::size_t i = 0; i < Mint::kMostLeaves; ++i) leaf_of(issue("a.corp", &real), kNow);
  CHECK_FALSE(same(later, leaf_of(server, kNow + std::chrono::hours(25))));
}

TEST_CASE("tls mint: where no leaf can be made it says why") {
  const Issued real = issue("ca"), server = issue("a.corp", &real);
  const auto why_not = [](std::initializer_list<const Issued*> chain, const Issued& of_server, std::vector<config::NamePattern> table,
                          const std::string& name = "a.corp") {
    const auto mint = make(chain, std::move(table));
    REQUIRE(mint.has_value());
    const auto made = (*mint)->leaf(kNow, of_server.certificate.get(), name);
    CHECK((made.leaf == nullptr) == !made.why_not.empty());
    return made.why_not;
  };
  const Issued free = issue("mint");
  CHECK(why_not({&free}, server, listed({"a.corp"})).empty());
  const Issued expired = issue("mint", nullptr, {.begins = -7200, .ends = -3600}), future = issue("mint", nullptr, {.begins = 3600});
  CHECK(why_not({&expired}, server, listed({"a.corp"})).starts_with("the minting CA expired on "));
  CHECK(why_not({&future}, server, listed({"a.corp"})).starts_with("the minting CA is not valid before "));
  const Issued elsewhere = issue("mint", nullptr, {.constraints = "permitted;DNS:com"});
  CHECK(why_not({&elsewhere}, server, listed({"a.corp"})) ==
        "the minting CA's name constraints do not permit it");
  const Issued except = issue("mint", nullptr, {.constraints = "permitted;DNS:corp,excluded;DNS:a.corp"});
  CHECK(why_not({&except}, server, listed({"a.corp"})) ==
        "the minting CA's name constraints do not permit it");
  // Of the one above it, too.
  const Issued between = issue("mint", &elsewhere, {.is_authority = true});
  CHECK(why_not({&between, &elsewhere}, server, listed({"a.corp"})) ==
        "the minting CA's name constraints do not permit it");
  // What OpenSSL verifies, and clients may refuse: a leaf would hide it.
  const std::string no_name =
      "the server's certificate has no subject alternative name (SAN) for it that may be copied";
  const Issued partly = issue("b.corp", &real, {.names = {"a*.corp.com", "b.corp.com"}});
  CHECK(why_not({&free}, partly, listed({"*.corp.com"}), "a1.corp.com") == no_name);
  const Issued old = issue("a.corp", &real, {.has_alternative_names = false});
  CHECK(why_not({&free}, old, listed({"a.corp"})) ==
        "the server's certificate has no subject alternative name (SAN) that may be copied");
  Profile many;
  for (std::size_t i = 0; i <= Mint::kMostNames; ++i) many.names.push_back("n" + std::to_string(i) + ".corp");
  const Issued crowd = issue("a.corp", &real, many);
  CHECK(why_not({&free}, crowd, listed({"*.corp"}), "n0.corp") ==
        "the server's certificate has too many of the names in [[tls_server]]");
  CHECK(why_not({&free}, crowd, listed({"n0.corp"}), "n0.corp").empty());
}

TEST_CASE("tls mint: a name that the authority may not sign for is left out, and the others stay valid") {
  const Issued authority = issue("mint", nullptr, {.constraints = "permitted;DNS:build.corp"}), real = issue("ca");
  const Issued server = issue("a.corp", &real, {.names = {"a.corp", "b.build.corp", "*.build.corp", "build.corp"}});
  const auto mint = make({&authority}, listed({"*.corp"}));
  const auto made = (*mint)->leaf(kNow, server.certificate.get(), "b.build.corp");
  REQUIRE(made.leaf);
  CHECK(names_of(made.leaf.get()) == std::vector<std::string>{"*.build.corp", "b.build.corp", "build.corp"});
  CHECK((*mint)->leaf(kNow, server.certificate.get(), "a.corp").leaf == nullptr);
  CHECK((*mint)->warnings("mint.crt").size() == 1);
}

}  // namespace
}  // namespace longhaul::tls
