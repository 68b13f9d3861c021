// SPDX-License-Identifier: Apache-2.0
// Streams of deflate that lie whole in a block (small files of gzip, members of zip archives, parts of PDF):
// opened, so that zstd sees what they hold, and closed again to the very same bytes. Only those are opened
// that zlib closes as they were; leaves to the caller whether both sides' zlib do that alike.
#pragma once
#include <optional>

#include "codecs/block_codec.h"
#include "codecs/byte_writer.h"

namespace longhaul::reduction {

// Of a block's content with what was in its streams: bounds what zstd may unfold to, and the time that
// closing takes (text is closed at 20 MB/s).
inline constexpr std::size_t kMaxOpenedBytes = 4 * kMaxBlockPlainBytes;

// Appends `varint map_bytes, map, bytes` (PROTOCOL.md, section 15), at most kMaxOpenedBytes, where `content`
// has such streams; otherwise false, and `out` is as it was.
bool open_deflated(Bytes content, Buffer& out);

// The content again, at the beginning of `content`, and how long it is; nothing if that is no opened content,
// or it does not fit, or zlib closes it otherwise than said.
std::optional<std::size_t> close_deflated(Bytes opened, MutableBytes content);

// How this side's zlib closes streams: where both sides have the same number, both make the same bytes.
std::uint64_t deflate_print();

}  // namespace longhaul::reduction
