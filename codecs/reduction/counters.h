// SPDX-License-Identifier: Apache-2.0
// The counters of reduction, per session and direction, and the sizes of one block: plain numbers, returned
// by value.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace longhaul::reduction {

// Bytes per stage. On the wire a block takes `encoded` bytes and its head.
struct BlockFigures {
  std::uint64_t plain_bytes = 0;
  std::uint64_t after_dedup_bytes = 0;  // tokens and literals
  std::uint64_t encoded_bytes = 0;      // after zstd, or unchanged
  std::uint64_t copies = 0;             // matches found, and the bytes that they cover
  std::uint64_t copied_bytes = 0;
  std::uint64_t disk_bytes = 0;  // of those, from history that was loaded for this stream
};

// Repeats by length: below 64 bytes, 256, 1 KiB, 4 KiB, 16 KiB, and longer.
inline constexpr std::size_t kHitLengths = 6;
inline constexpr std::array<std::uint32_t, kHitLengths - 1> kHitLengthBounds = {64, 256, 1024, 4096, 16'384};

struct EncoderCounters {
  std::uint64_t blocks = 0;
  BlockFigures bytes;  // sums over these blocks
  std::array<std::uint64_t, kHitLengths> hits{};
  std::uint64_t compressed_bytes = 0;       // given to zstd
  std::uint64_t passed_bytes = 0;           // sent unreduced: too small, or too little gain
  std::uint64_t opened_bytes = 0;           // of blocks with deflate data that was recompressed
  std::uint64_t incompressible_blocks = 0;  // zstd was skipped, or gained too little
  std::uint64_t horizon_stalls = 0;         // blocks not added to the history: too many are unacknowledged
  std::uint64_t needs = 0;                  // blocks that the twin requested again
  std::uint64_t mismatches = 0;             // of these, with a wrong checksum
  std::uint64_t gone = 0;                   // of these, no longer available
  std::uint64_t restarts = 0;               // of the history: earlier bytes are no longer referred to
  std::uint64_t loaded_bytes = 0;           // history brought back from disk
  std::uint64_t ring_bytes = 0;             // as agreed with the twin
  std::uint64_t ring_filled_bytes = 0;
  std::uint64_t unanswered_bytes = 0;  // between the oldest unanswered block and the head
  int zstd_level = 0;                  // current: the level that suits the line,
  std::uint64_t zstd_relief = 0;       // lowered by this many steps because the CPU is busy
};

struct DecoderCounters {
  std::uint64_t blocks = 0;
  BlockFigures bytes;
  std::uint64_t needs = 0;       // blocks that could not be decoded and were requested again
  std::uint64_t mismatches = 0;  // of these, with a wrong checksum
  std::uint64_t recovered = 0;   // of these, sent again by the twin
  std::uint64_t failed = 0;      // streams lost: neither restored nor recovered
  std::uint64_t loaded_bytes = 0;
  std::uint64_t segments_refused = 0;  // that the twin sealed of bytes which did not come in blocks, or twice
  std::uint64_t ring_bytes = 0;
  std::uint64_t ring_filled_bytes = 0;
};

struct Counters {
  EncoderCounters encoder;
  DecoderCounters decoder;
  std::uint64_t common_segments = 0;  // on the disks of both sides
};

}  // namespace longhaul::reduction
