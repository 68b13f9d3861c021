// SPDX-License-Identifier: Apache-2.0
// What reduction counts, per session and direction, and what one block cost: plain numbers, returned by
// value. Leaves to others what is shown of them, and adding them up per flow, port and peer.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace longhaul::reduction {

// Bytes per stage. What a block costs on the wire is `encoded` and its head.
struct BlockFigures {
  std::uint64_t plain_bytes = 0;
  std::uint64_t after_dedup_bytes = 0;  // tokens and literals
  std::uint64_t encoded_bytes = 0;      // after zstd, or as they were
  std::uint64_t copies = 0;             // repeats that were found, and what they cover
  std::uint64_t copied_bytes = 0;
  std::uint64_t disk_bytes = 0;  // of those covered, from history that was loaded for this stream
};

// Repeats by length: below 64 bytes, 256, 1 KiB, 4 KiB, 16 KiB, and longer.
inline constexpr std::size_t kHitLengths = 6;
inline constexpr std::array<std::uint32_t, kHitLengths - 1> kHitLengthBounds = {64, 256, 1024, 4096, 16'384};

struct EncoderCounters {
  std::uint64_t blocks = 0;
  BlockFigures bytes;  // sums over these blocks
  std::array<std::uint64_t, kHitLengths> hits{};
  std::uint64_t compressed_bytes = 0;       // given to zstd
  std::uint64_t passed_bytes = 0;           // too small for a block, or not worth one: sent as they were
  std::uint64_t opened_bytes = 0;           // of blocks in which streams of deflate were opened for zstd
  std::uint64_t incompressible_blocks = 0;  // zstd was not tried, or not worth it
  std::uint64_t horizon_stalls = 0;         // blocks that did not enter the history: too much is unanswered
  std::uint64_t needs = 0;                  // blocks the twin asked for again
  std::uint64_t mismatches = 0;             // of these, restored to other bytes
  std::uint64_t gone = 0;                   // of these, no longer here
  std::uint64_t restarts = 0;               // all that was before is no longer referred to
  std::uint64_t loaded_bytes = 0;           // history brought back from disk
  std::uint64_t ring_bytes = 0;             // as agreed with the twin
  std::uint64_t ring_filled_bytes = 0;
  std::uint64_t unanswered_bytes = 0;  // between the oldest unanswered block and the head
  int zstd_level = 0;                  // as of now: what the line is worth,
  std::uint64_t zstd_relief = 0;       // less so many steps, for want of processor time
};

struct DecoderCounters {
  std::uint64_t blocks = 0;
  BlockFigures bytes;
  std::uint64_t needs = 0;       // blocks that could not be restored and were asked for again
  std::uint64_t mismatches = 0;  // of these, restored to other bytes than the checksum's
  std::uint64_t recovered = 0;   // of these, the twin had them
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
