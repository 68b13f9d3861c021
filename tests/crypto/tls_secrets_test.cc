// SPDX-License-Identifier: Apache-2.0
// The trace of RFC 8448, section 3.
#include "crypto/tls_secrets.h"

#include <catch2/catch.hpp>
#include <string>

namespace longhaul {
namespace {

Buffer from_digits(const std::string& digits) {
  Buffer bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2)
    bytes.push_back(std::byte(std::stoi(digits.substr(at, 2), nullptr, 16)));
  return bytes;
}

TEST_CASE("TLS 1.3: secrets of application data match RFC 8448") {
  const auto secrets =
      application_secrets(*RecordSuite::of(0x1301),
                          from_digits("8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d"),
                          from_digits("9608102a0f1ccc6db6250b7b7e417b1a000eaada3daae4777a7686c9ff83df13"));
  CHECK(Buffer(Bytes(secrets.client).begin(), Bytes(secrets.client).end()) ==
        from_digits("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"));
  CHECK(Buffer(Bytes(secrets.server).begin(), Bytes(secrets.server).end()) ==
        from_digits("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"));
}

TEST_CASE("TLS 1.3: whether a record is the next one changes nothing") {
  const auto suite = *RecordSuite::of(0x1301);
  const Buffer secret(32, std::byte{7}), text(100, std::byte{'x'});
  RecordSealer sealer(suite, secret);
  RecordOpener opener(suite, secret);
  const Bytes pieces = text;
  Buffer first, second, plain;
  REQUIRE(sealer.seal(ContentType::application_data, std::span(&pieces, 1), first));
  REQUIRE(sealer.seal(ContentType::application_data, std::span(&pieces, 1), second));
  CHECK_FALSE(opener.is_next(second));
  CHECK(opener.is_next(first));
  CHECK(opener.is_next(first));
  CHECK(opener.open(first, plain) == ContentType::application_data);
  CHECK_FALSE(opener.is_next(first));
  CHECK(opener.is_next(second));
  CHECK(opener.open(second, plain) == ContentType::application_data);
  CHECK(plain.size() == 2 * text.size());
}

}  // namespace
}  // namespace longhaul
