// SPDX-License-Identifier: Apache-2.0
// What the twins need of a disk: pieces of a history that outlive the session, and a way to find them by
// content. Leaves files, threads and eviction to those who implement it (cache/); nothing here blocks.
#pragma once
#include <array>
#include <compare>
#include <optional>
#include <span>
#include <vector>

#include "codecs/byte_reader.h"
#include "codecs/byte_writer.h"
#include "codecs/slice.h"

namespace longhaul::reduction {

inline constexpr std::uint32_t kMaxSegmentBytes = 16 << 20;
// A hit names the granule in which the sampled content begins, not the byte.
inline constexpr std::uint32_t kHookGranule = 16 * 1024;

// A stretch of one ring, the same on every site that has it. Equal names mean equal bytes.
struct SegmentName {
  std::array<std::byte, 16> writer{};  // whose encoder it was: the first half of the site's fingerprint
  std::uint64_t epoch = 0;             // of its ring, random
  std::uint64_t first = 0;             // offset in the ring
  std::uint32_t length = 0;            // 1 to kMaxSegmentBytes
  std::array<std::byte, 16> digest{};  // XXH3-128 of the bytes, in canonical (big-endian) form

  auto operator<=>(const SegmentName&) const = default;
};

inline constexpr std::size_t kSegmentNameBytes = 16 + 8 + 8 + 4 + 16;

// kSegmentNameBytes, in the order of the members, numbers big-endian.
void write_name(const SegmentName& name, ByteWriter& writer);
// Nothing: too short, or a length that no segment has.
std::optional<SegmentName> read_name(ByteReader& reader);

// The digest of bytes that lie in pieces.
std::array<std::byte, 16> segment_digest(std::span<const Slice> parts);

// A sample of the content, by which it is found again. About one in 4 KiB; more than one in 2 KiB are thinned
// out by the store. Whoever looks up must have sampled as whoever put.
struct Hook {
  std::uint64_t fingerprint = 0;  // evenly distributed over all 64 bits
  std::uint32_t offset = 0;       // in the segment
};

// A hint: now and then (about one lookup in a million) it is wrong.
struct HookHit {
  std::uint32_t index = 0;  // of the fingerprint in what was asked for
  SegmentName name;
  std::uint32_t offset = 0;  // a multiple of kHookGranule, at or before the sampled content
};

using LoadId = std::uint64_t;

// Told of a store's segments, on the thread on which the store is used; anything may be asked of the store
// meanwhile.
class SegmentListener {
 public:
  virtual ~SegmentListener() = default;
  virtual void on_stored(const SegmentName& name) = 0;  // it can be loaded from now on
  // Said before the bytes go. What is asked for from now on fails, what was asked for may.
  virtual void on_dropped(const SegmentName& name) = 0;
  // What a load asked for, verified; nothing if it cannot be had. Never before load() has returned.
  virtual void on_loaded(LoadId load, std::optional<Slice> bytes) = 0;
};

// Everybody's who has a session: all of a site's peers share one store. Used on one thread.
class SegmentStore {
 public:
  enum class Put {
    taken,    // on_stored follows, unless the disk fails or the bytes do not match the name's digest
    present,  // it is here already, or being written
    refused,  // the queue or the disk has no room for it now; counted
  };

  virtual ~SegmentStore() = default;

  // Who listens hears of what is stored from now on; what was before is in list(). Nobody may be destroyed
  // while attached. What a detached one asked for is forgotten.
  virtual void attach(SegmentListener& listener) = 0;
  virtual void detach(SegmentListener& listener) = 0;

  // `parts` one behind the other are the segment. To make room it may drop others, and say so, before it
  // returns.
  virtual Put put(const SegmentName& name, std::vector<Slice> parts, std::vector<Hook> hooks) = 0;
  virtual void drop(const SegmentName& name) = 0;
  // What can be loaded.
  virtual std::vector<SegmentName> list() const = 0;

  // Appends what is known of these fingerprints, in their order; several for one that is in several segments.
  virtual void find(std::span<const std::uint64_t> fingerprints, std::vector<HookHit>& hits) = 0;
  // `size` bytes from `offset`, which must lie in the segment. A segment that was loaded from stays longer.
  virtual LoadId load(const SegmentName& name, std::uint32_t offset, std::uint32_t size,
                      SegmentListener& listener) = 0;
};

}  // namespace longhaul::reduction
