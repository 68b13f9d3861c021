// SPDX-License-Identifier: Apache-2.0
#include "crypto/tls12_records.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace longhaul {
namespace {

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

TEST_CASE("TLS 1.2 records open as they were sealed, in order, and nothing else does") {
  for (const std::uint16_t number :
       std::array<std::uint16_t, 6>{0xC02B, 0xC02C, 0xCCA9, 0xC02F, 0xC030, 0xCCA8}) {
    CAPTURE(number);
    const Tls12Suite suite = *Tls12Suite::of(number);
    const Tls12Secrets secrets =
        tls12_secrets(suite, bytes_of(std::string(48, 'm')), bytes_of(std::string(32, 's')),
                      bytes_of(std::string(32, 'c')));
    CHECK(secrets.client.size() == suite.secret_bytes());
    CHECK_FALSE(secrets.client == secrets.server);
    Tls12Sealer sealer(suite, secrets.client, 1);
    Buffer sealed;
    const std::string said(40'000, 'x');
    REQUIRE(sealer.seal(ContentType::application_data, bytes_of(said), sealed));
    REQUIRE(sealer.seal(ContentType::alert, bytes_of("\x01\x01"), sealed));
    std::vector<Bytes> records;
    for (Bytes rest = sealed; !rest.empty(); rest = rest.subspan(records.back().size()))
      records.push_back(rest.first(
          5 + (std::to_integer<std::size_t>(rest[3]) << 8 | std::to_integer<std::size_t>(rest[4]))));
    REQUIRE(records.size() == 4);

    Tls12Opener opener(suite, secrets.client, 1);
    Buffer plain;
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(opener.open(records[i], plain) == ContentType::application_data);
    CHECK(text_of(plain) == said);
    plain.clear();
    CHECK(opener.open(records[3], plain) == ContentType::alert);
    CHECK(text_of(plain) == "\x01\x01");

    const auto opens = [&](std::uint64_t at, Bytes record, Bytes secret) {
      Tls12Opener other(suite, secret, at);
      Buffer out;
      const auto type = other.open(record, out);
      CHECK(type.has_value() == !out.empty());
      return type.has_value();
    };
    CHECK(opens(1, records[0], secrets.client));
    CHECK_FALSE(opens(2, records[0], secrets.client));  // another place
    CHECK_FALSE(opens(1, records[0], secrets.server));  // another direction
    CHECK_FALSE(opens(1, records[0].first(records[0].size() - 1), secrets.client));
    CHECK_FALSE(opens(1, records[0].first(5), secrets.client));
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{20}, records[0].size() - 1}) {
      Buffer changed(records[0].begin(), records[0].end());
      changed[at] ^= std::byte{1};
      CHECK_FALSE(opens(1, changed, secrets.client));
    }
  }
  CHECK_FALSE(Tls12Suite::of(0xC023));  // CBC
  CHECK_FALSE(Tls12Suite::of(0x1301));  // of TLS 1.3
}

}  // namespace
}  // namespace longhaul
