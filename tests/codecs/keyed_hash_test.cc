// SPDX-License-Identifier: Apache-2.0
#include "codecs/keyed_hash.h"

#include <catch2/catch.hpp>
#include <vector>

namespace longhaul {
namespace {

// Keys that a table of this size would put into one bucket if numbers were their own hashes.
std::vector<std::uint64_t> colliding(std::size_t buckets, std::size_t count) {
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 1; i <= count; ++i) keys.push_back(i * buckets);
  return keys;
}

template <class Set>
std::size_t fullest_bucket(const Set& set) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < set.bucket_count(); ++i) most = std::max(most, set.bucket_size(i));
  return most;
}

}  // namespace

TEST_CASE("keys that are multiples of the table's size spread over its buckets") {
  constexpr std::size_t kKeys = 4096;
  std::unordered_set<std::uint64_t> identity(2 * kKeys);
  KeyedSet<std::uint64_t> keyed(2 * kKeys);
  for (std::uint64_t key : colliding(identity.bucket_count(), kKeys)) {
    identity.insert(key);
    keyed.insert(key);
  }
  CHECK(fullest_bucket(identity) == kKeys);
  CHECK(fullest_bucket(keyed) < 32);  // the expected maximum is about 6
}

TEST_CASE("keys of two numbers spread even if they share either number") {
  KeyedHash hash;
  KeyedSet<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    CHECK(seen.insert(hash(i, 7)).second);
    CHECK(seen.insert(hash(7, i + 1000)).second);
  }
}

TEST_CASE("another secret gives other buckets") {
  const HashSecret before = HashSecret::of_process();
  const std::size_t first = KeyedHash{}(1);
  CHECK(KeyedHash{}(1) == first);
  HashSecret::of_process() = HashSecret::random();
  CHECK(KeyedHash{}(1) != first);
  HashSecret::of_process() = before;
}

}  // namespace longhaul
