// SPDX-License-Identifier: Apache-2.0
// Bytes that nothing can compress and that both ends of a load can make. SplitMix64 (Steele, Lea, Flood
// 2014).
#pragma once
#include <cstdint>
#include <vector>

namespace bench {

// From a counter, which goes on: no two streams that begin far apart have a word in common.
inline void make_random(std::vector<std::uint64_t>& words, std::uint64_t& counter) {
  for (std::uint64_t& word : words) {
    std::uint64_t z = counter += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

}  // namespace bench
