// SPDX-License-Identifier: Apache-2.0
// A block written as references into the history and the bytes that are new: the token format of section 14
// of proxy/link/PROTOCOL.md. The match finder finds the references; the caller tracks which history the twin
// has.
#pragma once
#include <vector>

#include "codecs/byte_writer.h"
#include "codecs/dedup/history_ring.h"

namespace longhaul::dedup {

// block[position, position + length) equals the ring's bytes at `source`.
struct Copy {
  std::uint32_t position = 0;  // from the block's first byte
  std::uint32_t length = 0;
  std::uint64_t source = 0;  // ring offset; all of it lies before the block
  bool operator==(const Copy&) const = default;
};

// The shortest copy that a token can express; shorter repeats are cheaper as literals.
inline constexpr std::uint32_t kMinCopy = 8;

enum class ReferenceError {
  malformed = 1,  // not written by this encoder
  not_held,       // refers to history that this ring does not hold, or no longer
};
const boost::system::error_category& reference_category();
inline boost::system::error_code make_error_code(ReferenceError error) {
  return {static_cast<int>(error), reference_category()};
}

// Appends `varint token_bytes, tokens, literals` for the block at ring offset `offset`. Copies are in order,
// disjoint, not shorter than kMinCopy, and lie inside the block.
void encode_references(std::uint64_t offset, Bytes plain, const std::vector<Copy>& copies, Buffer& out);

// Reads the output of encode_references. Fills `copies`, all checked against the block's size and offset, and
// returns the literals, exactly as many as the copies leave over.
Result<Bytes> parse_references(Bytes encoded, std::uint64_t offset, std::size_t plain_bytes,
                               std::vector<Copy>& copies);

// Writes the block to `plain`, which may be the ring's own memory at the block's offset. Nothing is written
// unless the ring holds every source of the copies.
Result<void> restore_block(const HistoryRing& ring, const std::vector<Copy>& copies, Bytes literals,
                           MutableBytes plain);

// Both of these; `plain` has the size in the block's header.
Result<void> decode_references(const HistoryRing& ring, Bytes encoded, std::uint64_t offset,
                               MutableBytes plain);

}  // namespace longhaul::dedup

template <>
struct boost::system::is_error_code_enum<longhaul::dedup::ReferenceError> : std::true_type {};
