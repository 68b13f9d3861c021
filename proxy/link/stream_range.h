// SPDX-License-Identifier: Apache-2.0
// A part of a stream's wire bytes, between two offsets: what a frame carries, what was lost, what is copied.
#pragma once
#include "codecs/interval_set.h"
#include "proxy/link/types.h"

namespace longhaul::link {

struct StreamRange {
  StreamOffset begin, end;  // half-open

  static constexpr StreamRange of(Interval numbers) {
    return {StreamOffset(numbers.begin), StreamOffset(numbers.end)};
  }
  // For containers that know nothing of streams.
  constexpr Interval numbers() const { return {begin.number(), end.number()}; }

  constexpr std::uint64_t size() const { return end - begin; }
  constexpr bool empty() const { return begin >= end; }
  friend constexpr bool operator==(const StreamRange&, const StreamRange&) = default;
};

}  // namespace longhaul::link
