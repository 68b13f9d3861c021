// SPDX-License-Identifier: Apache-2.0
// What the far half says to the near half; the near half says nothing. Prefetches of a connection have the numbers 0, 1, 2 …
// in the order in which they are announced.
#pragma once
#include <cstdint>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "codecs/slice.h"
#include "proxy/modules/twin/codec.h"

namespace longhaul::http {

// Of the messages and of what they mean: another one is another module.
inline constexpr std::uint64_t kModuleVersion = 2;

// Before the bytes of the page that name them. These will be fetched: what a client asks for so may wait for that.
struct Announced {
  static constexpr std::size_t kMostBytes = 64 * 1024, kMostTargets = 256;
  Slice asked;    // the head of the requests, without a target's ("GET * HTTP/1.1")
  Slice targets;  // one a line
  static constexpr auto kFields = std::tuple(&Announced::asked, &Announced::targets);
};
// The next piece of the response: its head, and then content without framing. `bytes` of it follow in the stream.
struct Piece {
  static constexpr std::uint32_t kMostBytes = 64 * 1024;
  std::uint64_t number = 0;
  std::uint32_t bytes = 0;
  bool is_last = false;
  static constexpr auto kFields = std::tuple(&Piece::number, &Piece::bytes, &Piece::is_last);
  std::uint32_t attached_bytes() const { return bytes; }
};
// It will not come, or what came is not a response to be used.
struct Dropped {
  std::uint64_t number = 0;
  static constexpr auto kFields = std::tuple(&Dropped::number);
};
// As Piece, with the bytes in it: where the stream is not this module's.
struct WholePiece {
  std::uint64_t number = 0;
  bool is_last = false;
  Slice content;
  static constexpr auto kFields = std::tuple(&WholePiece::number, &WholePiece::is_last, &WholePiece::content);
};
using Message = std::variant<Announced, Piece, Dropped, WholePiece>;

}  // namespace longhaul::http
