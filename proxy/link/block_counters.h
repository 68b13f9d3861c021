// SPDX-License-Identifier: Apache-2.0
// Bytes of one stream, or the sum of several, before and after each stage of reduction. link/status.h has the
// counters of a whole session.
#pragma once
#include <cstdint>

namespace longhaul::link {

struct BlockCounters {
  struct Direction {
    std::uint64_t blocks = 0;
    std::uint64_t plain = 0;    // bytes before reduction
    std::uint64_t deduped = 0;  // after deduplication
    std::uint64_t encoded = 0;  // after compression, with block headers
    Direction& operator+=(const Direction& other) {
      blocks += other.blocks;
      plain += other.plain;
      deduped += other.deduped;
      encoded += other.encoded;
      return *this;
    }
    bool operator==(const Direction&) const = default;
  };
  Direction out, in;  // sent over the link, and received

  BlockCounters& operator+=(const BlockCounters& other) {
    out += other.out;
    in += other.in;
    return *this;
  }
  bool operator==(const BlockCounters&) const = default;
};

}  // namespace longhaul::link
