// SPDX-License-Identifier: Apache-2.0
// The bytes that are sent, and whether those that arrive are the same: made from the pair's key and their
// place, so that neither side keeps them. They look random: nothing on the way can make them smaller.
#pragma once
#include <cstdint>

#include "codecs/bytes.h"

namespace longhaul::txn {

enum class Direction : std::uint8_t { request, response };

class ByteSource {
 public:
  // `transaction` counts over the whole run; the same number always gives the same bytes.
  ByteSource(std::uint64_t key, std::uint64_t transaction, Direction direction);

  void fill(std::uint64_t offset, MutableBytes out) const;
  // Whether `bytes` are those at `offset`.
  bool matches(std::uint64_t offset, Bytes bytes) const;

 private:
  std::uint64_t word(std::uint64_t number) const;
  std::uint64_t seed_;
};

}  // namespace longhaul::txn
