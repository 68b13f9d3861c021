// SPDX-License-Identifier: Apache-2.0
// Bytes for the wire, in any pieces, as whole frames in pieces: nothing is copied but what a leg writes to. A
// leg seals each.
#pragma once
#include <optional>
#include <vector>

#include "codecs/slice.h"

namespace longhaul::smb::seal {

class Gathered {
 public:
  void push(Slice bytes);

  struct Whole {
    std::vector<Slice> pieces;
    std::size_t size = 0;  // with its head
  };
  std::optional<Whole> next();

 private:
  std::vector<Slice> pieces_;
  std::size_t bytes_ = 0;
};

// The first `size` bytes in a piece of their own, which may be written to.
std::byte* split_front(std::vector<Slice>& pieces, std::size_t size);

}  // namespace longhaul::smb::seal
