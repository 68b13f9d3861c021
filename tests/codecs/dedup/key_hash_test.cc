// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/key_hash.h"

#include <bit>

#include "codecs/dedup/twins.h"

using namespace longhaul::dedup;

TEST_CASE("every bit of a key changes about half of the bits of its hash") {
  Random random(3);
  const std::string text = random_bytes(random, kKeyBytes);
  const auto hash_of = [](const std::string& key) {
    return key_hash(reinterpret_cast<const std::byte*>(key.data()));
  };
  const std::uint64_t hash = hash_of(text);
  for (std::size_t bit = 0; bit < 8 * kKeyBytes; ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
    const int changed = std::popcount(hash ^ hash_of(other));
    INFO("bit " << bit << " changes " << changed);
    CHECK((changed >= 12 && changed <= 52));
  }
}

TEST_CASE("a hash depends on the 32 bytes of its key only") {
  Random random(4);
  std::string text = random_bytes(random, kKeyBytes + 2);
  const auto hash = [&] { return key_hash(reinterpret_cast<const std::byte*>(text.data()) + 1); };
  const std::uint64_t first = hash();
  text.front() = static_cast<char>(text.front() + 1);
  text.back() = static_cast<char>(text.back() + 1);
  CHECK(hash() == first);
}
