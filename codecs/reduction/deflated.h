// SPDX-License-Identifier: Apache-2.0
// Deflate streams that lie completely in a block (small gzip files, members of zip archives, parts of PDF):
// they are unpacked so that zstd sees their contents, and packed again to the same bytes. Only streams that
// zlib reproduces exactly are unpacked; the caller ensures that the zlib of both sides does.
#pragma once
#include <optional>

#include "codecs/block_codec.h"
#include "codecs/byte_writer.h"

namespace longhaul::reduction {

// Of a block's content with what was in its streams: bounds what zstd may unfold to.
inline constexpr std::size_t kMaxOpenedBytes = 4 * kMaxBlockPlainBytes;
// Bounds the time that closing the streams of one block takes. Text needs 50 to 100 steps a byte at level 9
// and about 1 ns for a step; bytes that were chosen for it need 4,096, so that their 262,144 take 0.6 s.
inline constexpr std::uint64_t kMaxClosingSteps = 1u << 24;

// An upper bound for the comparisons that zlib makes to close `plain` at `level` (1 to 9): for each position
// the earlier ones of the window with the same hash, at most as many as the level looks at (PROTOCOL.md,
// section 15).
std::uint64_t closing_steps(Bytes plain, int level);

// Appends `varint map_bytes, map, bytes` (PROTOCOL.md, section 15), at most kMaxOpenedBytes, where `content`
// has such streams; otherwise false, and `out` is as it was.
bool open_deflated(Bytes content, Buffer& out);

// The content again, at the beginning of `content`, and how long it is; nothing if that is no opened content,
// it does not fit, zlib closes it otherwise than said, or closing it takes more than kMaxClosingSteps.
std::optional<std::size_t> close_deflated(Bytes opened, MutableBytes content);

// How this side's zlib closes streams: where both sides have the same number, both make the same bytes.
std::uint64_t deflate_print();

}  // namespace longhaul::reduction
