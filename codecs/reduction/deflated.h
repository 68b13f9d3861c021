// SPDX-License-Identifier: Apache-2.0
// Deflate streams that lie completely in a block (small gzip files, members of zip archives, parts of PDF):
// they are unpacked so that zstd sees their contents, and packed again to the same bytes. Only streams that
// zlib reproduces exactly are unpacked; the caller ensures that the zlib of both sides does.
#pragma once
#include <optional>

#include "codecs/block_codec.h"
#include "codecs/byte_writer.h"

namespace longhaul::reduction {

// Limit of a block's content including its unpacked streams: bounds zstd's output.
inline constexpr std::size_t kMaxOpenedBytes = 4 * kMaxBlockPlainBytes;
// Limits the time for packing the streams of one block again. Text needs 50 to 100 steps a byte at level 9
// and about 1 ns for a step; bytes chosen by an attacker need 4,096, so that their 262,144 take 0.6 s.
inline constexpr std::uint64_t kMaxClosingSteps = 1u << 24;

// An upper bound for the comparisons that zlib makes to pack `plain` at `level` (1 to 9): for each position
// the earlier ones of the window with the same hash, at most as many as the level examines (PROTOCOL.md,
// section 15).
std::uint64_t closing_steps(Bytes plain, int level);

// Appends `varint map_bytes, map, bytes` (PROTOCOL.md, section 15), at most kMaxOpenedBytes, if `content` has
// such streams; otherwise returns false and leaves `out` unchanged.
bool open_deflated(Bytes content, Buffer& out);

// Restores the content at the beginning of `content` and returns its length. Returns nullopt if the input is
// not unpacked content, does not fit, zlib packs it differently than stated, or packing takes more than
// kMaxClosingSteps.
std::optional<std::size_t> close_deflated(Bytes opened, MutableBytes content);

// Identifies how this side's zlib packs streams: if both sides have the same number, both make the same
// bytes.
std::uint64_t deflate_print();

}  // namespace longhaul::reduction
