// SPDX-License-Identifier: Apache-2.0
// The messages from the far half to the near half, which sends none. The prefetches of a connection have the
// numbers 0, 1, 2 … in the order in which they are announced.
#pragma once
#include <cstdint>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "codecs/slice.h"
#include "proxy/modules/twin/codec.h"

namespace longhaul::http {

// Must change with the messages and their meaning.
inline constexpr std::uint64_t kModuleVersion = 2;

// Precedes the bytes of the page that refer to these targets. They will be fetched; equal requests of the
// client may wait.
struct Announced {
  static constexpr std::size_t kMostBytes = 64 * 1024, kMostTargets = 256;
  Slice asked;    // the head of the requests, without a target ("GET * HTTP/1.1")
  Slice targets;  // one per line
  static constexpr auto kFields = std::tuple(&Announced::asked, &Announced::targets);
};
// The next piece of the response: its head, then content without framing. `bytes` bytes follow in the stream.
struct Piece {
  static constexpr std::uint32_t kMostBytes = 64 * 1024;
  std::uint64_t number = 0;
  std::uint32_t bytes = 0;
  bool is_last = false;
  static constexpr auto kFields = std::tuple(&Piece::number, &Piece::bytes, &Piece::is_last);
  std::uint32_t attached_bytes() const { return bytes; }
};
// The object will not arrive, or its response cannot be used.
struct Dropped {
  std::uint64_t number = 0;
  static constexpr auto kFields = std::tuple(&Dropped::number);
};
// Like Piece, with the bytes in the message: used if the stream belongs to another module.
struct WholePiece {
  std::uint64_t number = 0;
  bool is_last = false;
  Slice content;
  static constexpr auto kFields = std::tuple(&WholePiece::number, &WholePiece::is_last, &WholePiece::content);
};
using Message = std::variant<Announced, Piece, Dropped, WholePiece>;

}  // namespace longhaul::http
