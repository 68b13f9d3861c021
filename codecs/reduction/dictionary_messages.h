// SPDX-License-Identifier: Apache-2.0
// The messages between the two codecs of a session (PROTOCOL.md, section "Reduction"): their wire forms, not
// their effects.
#pragma once
#include <variant>
#include <vector>

#include "codecs/byte_writer.h"
#include "codecs/interval_set.h"
#include "codecs/result.h"

namespace longhaul::reduction {

inline constexpr std::uint64_t kVersion = 1;

// From the encoder to the decoder.
struct Hello {
  std::uint64_t version = kVersion;
  std::uint64_t epoch = 0;
  std::uint64_t ring_bytes = 0;
  bool operator==(const Hello&) const = default;
};
struct PlainBlock {  // requested by NEED
  std::uint64_t ring_offset = 0;
  Bytes plain;
};
struct Gone {  // the block is no longer available
  std::uint64_t ring_offset = 0;
  bool operator==(const Gone&) const = default;
};
struct Floor {  // nothing before it will be referred to any more
  std::uint64_t ring_offset = 0;
  bool operator==(const Floor&) const = default;
};

// From the decoder to the encoder.
struct Welcome {
  std::uint64_t version = kVersion;
  std::uint64_t ring_bytes = 0;  // at most the size in HELLO; 0: no history
  std::uint64_t deflates = 0;    // deflate_print() of the decoder; 0: it packs nothing
  bool operator==(const Welcome&) const = default;
};
struct Held {
  std::vector<Interval> ranges;  // in order, disjoint, not empty, not touching
  bool operator==(const Held&) const = default;
};
struct Need {
  enum class Reason : std::uint8_t { unreachable, mismatch };
  std::uint64_t ring_offset = 0;
  std::uint32_t size = 0;
  Reason reason = Reason::unreachable;
  bool operator==(const Need&) const = default;
};
struct Clear {
  bool operator==(const Clear&) const = default;
};

// A type that is unknown here: skipped, or processed by another part.
struct OtherMessage {
  std::uint8_t type = 0;
  Bytes body;
};

using Message = std::variant<Hello, Welcome, Held, Need, PlainBlock, Gone, Clear, Floor, OtherMessage>;

inline constexpr std::size_t kMaxHeldRanges = 128;

// Bytes in the result are borrowed from `message`.
Result<Message> parse_message(Bytes message);

void write_message(const Hello& message, Buffer& out);
void write_message(const Welcome& message, Buffer& out);
void write_message(const Held& message, Buffer& out);
void write_message(const Need& message, Buffer& out);
void write_message(const PlainBlock& message, Buffer& out);
void write_message(const Gone& message, Buffer& out);
void write_message(const Clear& message, Buffer& out);
void write_message(const Floor& message, Buffer& out);

}  // namespace longhaul::reduction
