// SPDX-License-Identifier: Apache-2.0
// The hash of the 32 bytes at a sample. Eight keys are hashed by AVX-512 in the time of one
// (fingerprint_index_avx512.cc). Never leaves this process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace longhaul::dedup {

inline constexpr std::size_t kKeyBytes = 32;

// Each of the key's 32-bit words plus one of these, modulo 2^32; the sum, modulo 2^64, of the products of
// each two neighbours (NH of UMAC, RFC 4418 section 5.2), then mixed by the factor.
inline constexpr std::uint32_t kKeyAddends[8] = {0x9e3779b9, 0x7f4a7c15, 0xf39cc060, 0x5cedc834,
                                                 0x1082276b, 0xf3a27251, 0xf86c6a11, 0xd0c18e95};
inline constexpr std::uint64_t kKeyFactor = 0x9fb21c651e98df25;

inline std::uint64_t key_hash(const std::byte* key) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < std::size(kKeyAddends); i += 2) {
    std::uint32_t words[2];
    std::memcpy(words, key + 4 * i, sizeof words);
    hash += std::uint64_t{words[0] + kKeyAddends[i]} * (words[1] + kKeyAddends[i + 1]);
  }
  hash ^= hash >> 31;
  hash *= kKeyFactor;
  return hash ^ hash >> 32;
}

}  // namespace longhaul::dedup
