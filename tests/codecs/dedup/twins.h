// SPDX-License-Identifier: Apache-2.0
// An encoder and a decoder with a history each, joined directly: what is sent has to come out the same.
// Leaves blocks that are late, lost or asked for again to the tests of the whole codec.
#pragma once
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>

#include "codecs/dedup/match_finder.h"

namespace longhaul::dedup {

using Random = std::mt19937_64;

inline std::string random_bytes(Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(random() >> 32);
  return bytes;
}

// Words out of a small vocabulary: repeats of all lengths, as in text.
inline std::string random_text(Random& random, std::size_t size) {
  std::string text;
  while (text.size() < size) {
    Random word(random() % 500);
    text += random_bytes(word, 2 + word() % 9);
    text += ' ';
  }
  text.resize(size);
  return text;
}

struct Twins {
  explicit Twins(std::size_t ring_bytes, const Kernels* kernels = nullptr)
      : here(HistoryRing::make(ring_bytes).value()),
        there(HistoryRing::make(ring_bytes).value()),
        finder(MatchFinder::make({ring_bytes, kernels}).value()) {}

  // Encodes a block, decodes it, compares; answers the encoded size.
  std::size_t block(Bytes plain) {
    return block(plain, [this](std::uint64_t) { return Interval{here.floor(), here.head()}; });
  }
  template <class F>
  std::size_t block(Bytes plain, const F& usable) {
    offset = here.place(plain.size());
    std::memcpy(here.reserve(offset, plain.size()).data(), plain.data(), plain.size());
    finder.find(here, offset, plain.size(), usable, copies, with_continuation ? &continuation : nullptr);
    check_copies(plain.size());
    Buffer encoded;
    encode_references(offset, plain, copies, encoded);
    const MutableBytes restored = there.reserve(offset, plain.size());
    const auto result = decode_references(there, encoded, offset, restored);
    if (!result || std::memcmp(restored.data(), plain.data(), plain.size()) != 0)
      FAIL("a block of " << plain.size() << " bytes at " << offset << " came out wrong");
    for (const Copy& copy : copies) copied += copy.length;
    return encoded.size();
  }

  // All of it in blocks of a size; answers the sum.
  std::size_t send(std::string_view text, std::size_t block_bytes = kRingStep) {
    std::size_t sum = 0;
    for (std::size_t at = 0; at < text.size(); at += block_bytes)
      sum += block(as_bytes(text.substr(at, block_bytes)));
    return sum;
  }

  void check_copies(std::size_t size) const {
    std::size_t done = 0;
    for (const Copy& copy : copies) {
      if (copy.position < done || copy.length < kMinCopy || copy.position + copy.length > size ||
          copy.source + copy.length > offset || !here.holds(copy.source, copy.length))
        FAIL("copy of " << copy.length << " at " << copy.position << " from " << copy.source << ", block at "
                        << offset);
      done = copy.position + copy.length;
    }
  }

  HistoryRing here, there;
  MatchFinder finder;
  std::vector<Copy> copies;
  std::uint64_t offset = 0;
  std::uint64_t continuation = 0;
  bool with_continuation = true;
  std::size_t copied = 0;
};

}  // namespace longhaul::dedup
