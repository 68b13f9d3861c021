// SPDX-License-Identifier: Apache-2.0
// Hash tables for numbers that another host chooses (ids of streams and segments, offsets). The standard hash
// of a number is the number itself, so a sender can put every key into one bucket; this one depends on a
// secret of the process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <unordered_set>

namespace longhaul {

// The secret: random in each process. Tests and fuzz targets may set another before the first table is made,
// so that runs are repeatable.
struct HashSecret {
  __extension__ using Wide = unsigned __int128;
  Wide factor = 0, summand = 0;

  static HashSecret random() { return made_by(std::random_device{}); }
  // The same for each run, for tests and fuzz targets.
  static HashSecret from(std::uint64_t seed) { return made_by(std::mt19937_64(seed)); }
  static HashSecret& of_process() {
    static HashSecret secret = random();
    return secret;
  }

 private:
  template <class Source>
  static HashSecret made_by(Source&& source) {
    auto wide = [&source] {
      Wide value = 0;
      for (int i = 0; i < 4; ++i) value = value << 32 | static_cast<std::uint32_t>(source());
      return value;
    };
    HashSecret secret;
    secret.factor = wide() | 1;
    secret.summand = wide();
    return secret;
  }
};

// (a x + b) mod 2^128, its upper half: two keys that were chosen without knowledge of a and b collide with
// probability 2^-64 (M. Dietzfelbinger, "Universal hashing and k-wise independent random variables via
// integer arithmetic without primes", 1996). Two multiplications.
struct KeyedHash {
  std::size_t operator()(std::uint64_t key) const noexcept {
    const HashSecret& secret = HashSecret::of_process();
    return static_cast<std::size_t>((secret.factor * key + secret.summand) >> 64);
  }
  // For numbers with their own type.
  template <class Id>
  requires requires(const Id& id) { std::uint64_t{id.number()}; }
  std::size_t operator()(const Id& id) const noexcept { return (*this)(std::uint64_t{id.number()}); }
  // For keys of two numbers.
  std::size_t operator()(std::uint64_t high, std::uint64_t low) const noexcept {
    return (*this)((*this)(high) ^ low);
  }
};

template <class Key, class Value>
using KeyedMap = std::unordered_map<Key, Value, KeyedHash>;
template <class Key>
using KeyedSet = std::unordered_set<Key, KeyedHash>;

}  // namespace longhaul
