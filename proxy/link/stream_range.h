// SPDX-License-Identifier: Apache-2.0
// A part of a stream's wire bytes, between two offsets: in a frame, declared lost, or copied.
#pragma once
#include "codecs/interval_set.h"
#include "proxy/link/types.h"

namespace longhaul::link {

struct StreamRange {
  StreamOffset begin, end;  // half-open

  static constexpr StreamRange of(Interval numbers) {
    return {StreamOffset(numbers.begin), StreamOffset(numbers.end)};
  }
  // For containers of plain integers.
  constexpr Interval numbers() const { return {begin.number(), end.number()}; }

  constexpr std::uint64_t size() const { return end - begin; }
  constexpr bool empty() const { return begin >= end; }
  friend constexpr bool operator==(const StreamRange&, const StreamRange&) = default;
};

}  // namespace longhaul::link
