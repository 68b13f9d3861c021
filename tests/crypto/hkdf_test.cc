// SPDX-License-Identifier: Apache-2.0
// The test vectors of RFC 5869, appendix A.
#include "crypto/hkdf.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace longhaul;

namespace {

using Raw = std::vector<std::byte>;

Raw from_hex(const std::string& digits) {
  Raw bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2)
    bytes.push_back(std::byte(std::stoi(digits.substr(at, 2), nullptr, 16)));
  return bytes;
}

Raw counted(int first, int last) {
  Raw bytes;
  for (int value = first; value <= last; ++value) bytes.push_back(std::byte(value));
  return bytes;
}

}  // namespace

TEST_CASE("HKDF matches RFC 5869") {
  const Raw secret(22, std::byte{0x0b});
  Raw out(42);
  hkdf(counted(0x00, 0x0c), secret, counted(0xf0, 0xf9), out);
  CHECK(out ==
        from_hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
  hkdf({}, secret, {}, out);
  CHECK(out ==
        from_hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"));
}

TEST_CASE("HKDF-Expand alone takes the key from HKDF-Extract") {
  Raw out(42);
  hkdf_expand(from_hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"),
              counted(0xf0, 0xf9), out);
  CHECK(out ==
        from_hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
}
