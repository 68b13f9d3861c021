// SPDX-License-Identifier: Apache-2.0
// Assembles bytes for the wire, in any pieces, to whole frames in pieces. Only what a leg writes to is
// copied. A leg seals each frame.
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
    std::size_t size = 0;  // including its head
  };
  std::optional<Whole> next();

 private:
  std::vector<Slice> pieces_;
  std::size_t bytes_ = 0;
};

// The first `size` bytes in a separate piece, which may be written to.
std::byte* split_front(std::vector<Slice>& pieces, std::size_t size);

}  // namespace longhaul::smb::seal
