// SPDX-License-Identifier: Apache-2.0
#include "crypto/secret.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <new>

using namespace longhaul;

namespace {
bool all_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}
}  // namespace

TEST_CASE("a secret is wiped from its memory, even if an exception ends its scope") {
  alignas(Secret<32>) std::array<std::byte, sizeof(Secret<32>)> place;
  struct Holder {
    Secret<32> secret;
    Holder() {
      secret.bytes.fill(std::byte{0x5a});
      throw std::bad_alloc();
    }
  };
  place.fill(std::byte{0x11});
  CHECK_THROWS_AS(new (place.data()) Holder, std::bad_alloc);
  CHECK(all_zero(place));
}

TEST_CASE("secret bytes are wiped, and a moved secret is only in its new place") {
  SecretBytes secret(48);
  std::fill_n(secret.data(), secret.size(), std::byte{0x5a});
  SecretBytes moved = std::move(secret);
  CHECK(secret.empty());
  CHECK(moved.size() == 48);
  CHECK_FALSE(all_zero(moved));
  moved.wipe();
  CHECK(all_zero(moved));
}
