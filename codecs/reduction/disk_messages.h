// SPDX-License-Identifier: Apache-2.0
// The messages between two disk tiers (PROTOCOL.md, section "Disks"), and the loads in a block: their wire
// forms, not their effects.
#pragma once
#include <array>
#include <vector>

#include "codecs/byte_reader.h"
#include "codecs/byte_writer.h"
#include "codecs/result.h"
#include "codecs/slice.h"

namespace longhaul::reduction {

enum class DiskMessage : std::uint8_t {
  have = 9,
  lost,
  sealed,
  cannot,
  remember,
  remembered,
  forget,
  forgotten
};

// A segment on the wire: CommonSegments::id_of().
using SegmentId = std::uint64_t;

inline constexpr std::uint32_t kLoadBytes = 1u << 20;  // maximum of one load
inline constexpr std::size_t kMaxLoads = 64;           // maximum in one block
inline constexpr std::uint64_t kMaxLoadedBytes = 16u << 20;

// A piece of a segment, and its position in the history.
struct Load {
  SegmentId segment = 0;
  std::uint32_t offset = 0, length = 0;
  std::uint64_t ring_offset = 0;
  bool operator==(const Load&) const = default;
};
void write_load(const Load& load, Buffer& out);
// `before`: the ring offset of the block that contains them; all of them must be before it.
Result<std::vector<Load>> parse_loads(Bytes loads, std::uint64_t before);

struct SealedRange {
  std::uint64_t first = 0;
  std::uint32_t length = 0;
  std::array<std::byte, 16> digest{};
  bool operator==(const SealedRange&) const = default;
};
Slice sealed_message(const SealedRange& range);
Result<SealedRange> parse_sealed(Bytes body);

// Reports a load that failed; its offset in the segment is not sent.
Slice cannot_message(const Load& load);
Result<Load> parse_cannot(Bytes body);

Slice forgotten_message(std::uint64_t bytes);
Result<std::uint64_t> parse_forgotten(Bytes body);

// A message without a body.
Slice plain_message(DiskMessage type);

}  // namespace longhaul::reduction
