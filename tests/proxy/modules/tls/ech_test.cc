// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/ech.h"

#include <catch2/catch.hpp>
#include <string>

namespace longhaul::tls {
namespace {

Bytes as_bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string with16(const std::string& text) {
  return std::string{static_cast<char>(text.size() >> 8), static_cast<char>(text.size())} + text;
}
std::string with8(const std::string& text) { return std::string{static_cast<char>(text.size())} + text; }

const std::string kSuite{0, 1, 0, 1}, kOtherSuite{0, 1, 0, 3};

// As RFC 9849, section 4, has it.
std::string configuration(char config, const std::string& suites, const std::string& name) {
  return "\xfe\x0d" + with16(std::string{config, 0, 0x20} + with16(std::string(32, 'k')) + with16(suites) +
                             '\0' + with8(name) + with16(""));
}
std::string hello(char type, char config, const std::string& suite) {
  return type + suite + config + with16(std::string(32, 'e')) + with16(std::string(144, 'h'));
}

TEST_CASE("tls ech: the offer of an outer ClientHello is read, and nothing else is one") {
  const std::string outer = hello(0, 7, kOtherSuite);
  const auto offer = ech_offer(as_bytes_of(outer));
  REQUIRE(offer);
  CHECK(offer->kdf == 1);
  CHECK(offer->aead == 3);
  CHECK(offer->config == 7);
  CHECK_FALSE(ech_offer(as_bytes_of(hello(1, 7, kSuite))));  // the inner one has only its type
  CHECK_FALSE(ech_offer(as_bytes_of(outer + 'x')));
  for (std::size_t size = 0; size < outer.size(); ++size)
    CHECK_FALSE(ech_offer(as_bytes_of(outer).first(size)));
}

TEST_CASE("tls ech: a server has the key of an offer with the same number, suite and public name") {
  const EchOffer offer{.kdf = 1, .aead = 1, .config = 7};
  const auto has = [&](const std::string& configs) {
    return has_ech_key(as_bytes_of(configs), offer, "public.corp");
  };
  const std::string right = configuration(7, kOtherSuite + kSuite, "Public.corp");
  CHECK(has(with16(right)));
  CHECK_FALSE(has(with16(configuration(8, kSuite, "public.corp"))));
  CHECK_FALSE(has(with16(configuration(7, kOtherSuite, "public.corp"))));
  CHECK_FALSE(has(with16(configuration(7, kSuite, "other.corp"))));
  CHECK_FALSE(has(with16("")));
  CHECK_FALSE(has(""));
  // Among others, also such of versions to come.
  CHECK(has(with16(configuration(8, kSuite, "public.corp") + "\xfe\x0e" + with16("?") + right)));
  CHECK_FALSE(has(with16(right) + 'x'));
  for (std::size_t size = 0; size < right.size(); ++size) CHECK_FALSE(has(with16(right.substr(0, size))));
}

TEST_CASE("tls ech: what is only pretended looks like an offer, and is another each time") {
  const Buffer one = pretended_ech(), other = pretended_ech();
  const auto offer = ech_offer(one);
  REQUIRE(offer);
  CHECK(offer->kdf == 1);
  CHECK(offer->aead == 1);
  CHECK(one.size() == hello(0, 7, kSuite).size());
  CHECK(one != other);
}

}  // namespace
}  // namespace longhaul::tls
