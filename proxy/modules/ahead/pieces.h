// SPDX-License-Identifier: Apache-2.0
// Available parts of a file, in a map by their offset, disjoint: which of them lie in a range, and which gaps
// are between them. A part is a Slice, or has one as its `bytes`.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "codecs/slice.h"

namespace longhaul::ahead {

// The data of a READ: bytes in pieces, in order. Fewer than requested only at the end of the file.
struct ReadData {
  std::vector<Slice> pieces;
  std::uint32_t length = 0;
};

inline std::uint64_t end_of(std::uint64_t offset, const Slice& bytes) { return offset + bytes.size(); }
inline const Slice& slice_of(const Slice& slice) { return slice; }
template <class Piece>
const Slice& slice_of(const Piece& piece) {
  return piece.bytes;
}

// The first piece that ends after `offset`; the pieces are disjoint.
template <class Pieces>
auto first_behind(Pieces& pieces, std::uint64_t offset) {
  auto piece = pieces.upper_bound(offset);
  if (piece != pieces.begin()) {
    auto before = std::prev(piece);
    if (end_of(before->first, slice_of(before->second)) > offset) return before;
  }
  return piece;
}

// Calls `visit(offset, slice)` for each part of [offset, offset + bytes) that is not in `pieces`. `visit`
// must not change them.
template <class Pieces, class Visit>
void for_each_gap(const Pieces& pieces, std::uint64_t offset, const Slice& bytes, Visit&& visit) {
  std::uint64_t at = offset, end = end_of(offset, bytes);
  auto cut = [&](std::uint64_t from, std::uint64_t to) {
    visit(from, bytes.sub(static_cast<std::size_t>(from - offset), static_cast<std::size_t>(to - from)));
  };
  for (auto piece = first_behind(pieces, at); at < end && piece != pieces.end() && piece->first < end;
       ++piece) {
    if (piece->first > at) cut(at, piece->first);
    at = end_of(piece->first, slice_of(piece->second));
  }
  if (at < end) cut(at, end);
}

// The data of [offset, end). Returns nullopt if there is a gap before `end` or the end of the file.
inline std::optional<ReadData> gather(const std::map<std::uint64_t, Slice>& pieces, std::uint64_t offset,
                                      std::uint64_t end, std::optional<std::uint64_t> end_of_file) {
  if (end_of_file) end = std::min(end, std::max(*end_of_file, offset));
  ReadData data;
  std::uint64_t at = offset;
  for (const auto& [begin, bytes] : pieces) {
    if (at >= end || begin > at) break;
    std::uint64_t until = std::min(end, end_of(begin, bytes));
    data.pieces.push_back(
        bytes.sub(static_cast<std::size_t>(at - begin), static_cast<std::size_t>(until - at)));
    at = until;
  }
  if (at < end) return std::nullopt;
  data.length = static_cast<std::uint32_t>(end - offset);
  return data;
}

}  // namespace longhaul::ahead
