// SPDX-License-Identifier: Apache-2.0
// The common part of fuzz targets of state machines: an input read as choices.
#pragma once
#include <algorithm>

#include "codecs/byte_writer.h"

namespace longhaul::fuzz {

// Sizes that length fields may say, so that a message is as large as its protocol allows without an input of
// that size.
inline std::size_t size_number(unsigned number) {
  static constexpr std::size_t sizes[] = {0, 1, 300, 4'100, 66'000, 300'000, 2u << 20};
  return sizes[number % 7];
}

// Reads choices from the input; at its end everything is zero.
class Choices {
 public:
  explicit Choices(Bytes input) : rest_(input) {}
  bool empty() const { return rest_.empty(); }
  unsigned byte() {
    if (rest_.empty()) return 0;
    unsigned value = std::to_integer<unsigned>(rest_[0]);
    rest_ = rest_.subspan(1);
    return value;
  }
  unsigned below(unsigned bound) { return byte() % bound; }
  // Small numbers mostly, and the edges where arithmetic breaks.
  std::uint64_t number() {
    switch (unsigned kind = byte(); kind % 8) {
      case 0:
        return kMaxVarint;
      case 1:
        return kMaxVarint - byte();
      case 2:
        return std::uint64_t{byte()} << (kind / 8);
      case 3:
        return byte() * 4096u;
      default:
        return byte();
    }
  }
  Bytes exactly(std::size_t size) {  // less where the input ends
    const Bytes taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  Bytes some(std::size_t most) {
    std::size_t size = std::min<std::size_t>(rest_.size(), byte() % (most + 1));
    size = std::min(size, rest_.size());
    Bytes taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

 private:
  Bytes rest_;
};

inline std::size_t some_size(Choices& choices) { return size_number(choices.byte()); }

}  // namespace longhaul::fuzz
