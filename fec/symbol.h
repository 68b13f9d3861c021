// SPDX-License-Identifier: Apache-2.0
// The terms that encoder and decoder share: symbols, windows of them, and repairs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace longhaul::fec {

using Bytes = std::span<const std::byte>;

// Source symbols count up from 0 per encoder; a number is never used twice.
using SymbolId = std::uint64_t;
inline constexpr SymbolId kMaxSymbolId = (SymbolId{1} << 62) - 1;  // the largest varint of RFC 9000

// The largest window and the number of keys. Within these limits, all repairs over one window are linearly
// independent (field.h).
inline constexpr std::uint32_t kMaxWindow = 192;
inline constexpr std::uint32_t kKeys = 64;

// A coded symbol is the length of its payload (u16, big-endian), the payload, and zeros.
inline constexpr std::size_t kLengthBytes = 2;
inline constexpr std::size_t kMaxPayload = 16'384;

// The symbols [first, first + count).
struct Window {
  SymbolId first = 0;
  std::uint32_t count = 0;
  bool operator==(const Window&) const = default;
};

// One linear combination of the window's symbols, as long as the longest of them including its length field.
struct Repair {
  Window window;
  std::uint32_t key = 0;  // below kKeys; determines the combination
  Bytes coded;
};

}  // namespace longhaul::fec
