// SPDX-License-Identifier: Apache-2.0
// How much is fetched before a client has shown that it reads it: less on connections whose clients did not
// read what was fetched for earlier files, more again if they did. Pure policy, for one connection.
#pragma once
#include <algorithm>
#include <cstdint>

#include "proxy/modules/ahead/read_ahead.h"

namespace longhaul::ahead {

class LearntLimits {
 public:
  // The limits of the line, reduced.
  ReadAheadLimits reduced(ReadAheadLimits line) const {
    line.first_bytes = std::min(line.first_bytes, first_bytes_);
    line.scattered_bytes = std::min(line.scattered_bytes, scattered_bytes_);
    return line;
  }

  struct Closed {
    bool was_pushed = false;         // some of its data was pushed
    std::uint64_t unread_bytes = 0;  // fetched, but not read
    bool is_scattered = false;       // fetched completely, because it was read at random
    std::uint64_t size = 0;
  };
  // A file was closed: checks whether the part fetched with its open was read, or all of it if all was
  // fetched.
  void closed(const Closed& file) {
    const bool in_vain = file.was_pushed && file.unread_bytes >= kLeastFirstBytes;
    first_bytes_ =
        in_vain ? std::max(first_bytes_ / 2, kLeastFirstBytes) : std::min(first_bytes_ * 2, kMostFirstBytes);
    if (!file.is_scattered) return;
    scattered_bytes_ = file.unread_bytes > file.size / 2
                           ? std::max(scattered_bytes_ / 4, kLeastScatteredBytes)
                           : std::min(scattered_bytes_ * 4, kMostScatteredBytes);
  }

 private:
  static constexpr std::uint64_t kLeastFirstBytes = 64 << 10, kMostFirstBytes = 4 << 20;
  static constexpr std::uint64_t kLeastScatteredBytes = 256 << 10, kMostScatteredBytes = 16 << 20;

  std::uint64_t first_bytes_ = 2 << 20;
  std::uint64_t scattered_bytes_ = kMostScatteredBytes;
};

}  // namespace longhaul::ahead
