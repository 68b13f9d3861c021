// SPDX-License-Identifier: Apache-2.0
// Remembers received packet numbers, so that none is accepted twice: one bit for each of the latest numbers;
// older ones count as received. Only for packets that are already authenticated.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "proxy/link/udp/packet_number.h"

namespace longhaul::link::udp {

class ReplayWindow {
 public:
  // At 10 Gbit/s full packets this is 37 ms of reordering, at 1 Gbit/s 0.4 s; it costs 4 KiB.
  static constexpr std::uint64_t kNumbers = 32'768;

  // True once for each number; false for repetitions, and for numbers below the window.
  [[nodiscard]] bool take(PacketNumber number) {
    if (number >= end_) {
      advance(number);
    } else if (end_ - number > kNumbers) {
      return false;
    }
    std::uint64_t& word = words_[number.number() / 64 % kWords];
    std::uint64_t bit = std::uint64_t{1} << number.number() % 64;
    if (word & bit) return false;
    word |= bit;
    return true;
  }

  // One more than the highest number received: the number expected next.
  PacketNumber end() const { return end_; }

 private:
  // One word more than the window is long, so that clearing whole words never forgets a number inside it.
  static constexpr std::uint64_t kWords = kNumbers / 64 + 1;

  void advance(PacketNumber number) {
    // The word of end_ - 1 is in use; those behind it up to `number`'s are taken over from older numbers.
    std::uint64_t first = (end_.number() + 63) / 64, last = number.number() / 64;
    if (last >= first + kWords) first = last + 1 - kWords;
    for (std::uint64_t word = first; word <= last; ++word) words_[word % kWords] = 0;
    end_ = number + 1;
  }

  std::array<std::uint64_t, kWords> words_{};
  PacketNumber end_;
};

}  // namespace longhaul::link::udp
