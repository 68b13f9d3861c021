// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/session_token.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace longhaul::link;

TEST_CASE("both sides name a new session by the two nonces, in the order of their roles") {
  const Token one = random_token(), other = random_token();
  CHECK((one != other));
  CHECK((one != Token{}));
  CHECK((new_session_id(one, other) == new_session_id(one, other)));
  CHECK((new_session_id(one, other) != new_session_id(other, one)));
  // The first half of SHA-256 of 32 zeros: the two sides may be of different releases.
  constexpr unsigned char kOfZeros[16] = {0x66, 0x68, 0x7a, 0xad, 0xf8, 0x62, 0xbd, 0x77,
                                          0x6c, 0x8f, 0xc1, 0x8b, 0x8e, 0x9f, 0x8e, 0x20};
  const Token id = new_session_id({}, {});
  CHECK(std::equal(id.begin(), id.end(), kOfZeros,
                   [](std::byte a, unsigned char b) { return std::to_integer<unsigned char>(a) == b; }));
}
