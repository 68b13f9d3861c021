// SPDX-License-Identifier: Apache-2.0
// The interface to a disk: pieces of a history that outlive the session, and a lookup by content. cache/
// implements it with files, threads and eviction; nothing here blocks.
#pragma once
#include <algorithm>
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
// Shorter segments would cost more on disk than they save on the line.
inline constexpr std::uint32_t kMinSealedBytes = 32u << 10;
// For one link: limits how many segments a session must examine at its start because of a peer.
inline constexpr std::size_t kMaxSegmentsOfLink = 1u << 18;
// A hit gives the granule in which the sampled content begins, not the byte.
inline constexpr std::uint32_t kHookGranule = 16 * 1024;

using SiteId = std::array<std::byte, 16>;  // the first half of the site's fingerprint

// The two sites at the ends of a link, in either order.
struct SitePair {
  SiteId lower{}, higher{};

  SitePair() = default;
  SitePair(const SiteId& one, const SiteId& other)
      : lower(std::min(one, other)), higher(std::max(one, other)) {}
  bool has(const SiteId& site) const { return lower == site || higher == site; }
  auto operator<=>(const SitePair&) const = default;
};

// A range of one ring, the same on both sites that have it: it belongs to the two sites whose link carried
// it, and to no other. Equal names mean equal bytes.
struct SegmentName {
  SiteId writer{};                     // the encoder's site
  SiteId reader{};                     // the decoder's site
  std::uint64_t epoch = 0;             // of the ring; random
  std::uint64_t first = 0;             // offset in the ring
  std::uint32_t length = 0;            // 1 to kMaxSegmentBytes
  std::array<std::byte, 16> digest{};  // XXH3-128 of the bytes, in canonical (big-endian) form

  SitePair sites() const { return {writer, reader}; }
  auto operator<=>(const SegmentName&) const = default;
};

inline constexpr std::size_t kSegmentNameBytes = 16 + 16 + 8 + 8 + 4 + 16;

// kSegmentNameBytes, in the order of the members, numbers big-endian.
void write_name(const SegmentName& name, ByteWriter& writer);
// Returns nullopt if it is too short, or has an impossible length.
std::optional<SegmentName> read_name(ByteReader& reader);

// The digest of bytes in several pieces.
std::array<std::byte, 16> segment_digest(std::span<const Slice> parts);

// A sample of the content, by which the content is found again. About one in 4 KiB; the store drops some if
// there is more than one in 2 KiB. Lookups must use the same sampling as puts.
struct Hook {
  std::uint64_t fingerprint = 0;  // evenly distributed over all 64 bits
  std::uint32_t offset = 0;       // in the segment
};

// A hint: occasionally (about one lookup in a million) it is wrong.
struct HookHit {
  std::uint32_t index = 0;  // index of the fingerprint in the request
  SegmentName name;
  std::uint32_t offset = 0;  // a multiple of kHookGranule, at or before the sampled content
};

using LoadId = std::uint64_t;

// Receives a store's events, on the thread that uses the store; may call the store meanwhile.
class SegmentListener {
 public:
  virtual ~SegmentListener() = default;
  virtual void on_stored(const SegmentName& name) = 0;  // it can be loaded from now on
  // Called before the bytes are removed. Later loads fail; earlier ones may fail.
  virtual void on_dropped(const SegmentName& name) = 0;
  // The bytes that a load requested, verified; nullopt if they are unavailable. Never called before load()
  // has returned.
  virtual void on_loaded(LoadId load, std::optional<Slice> bytes) = 0;
};

// All segments stored by a site's links. peer_segments.h decides which peer may read which of them; a session
// uses a store only through that. Used on one thread.
class SegmentStore {
 public:
  enum class Put {
    taken,    // on_stored follows, unless the disk fails or the bytes do not match the name's digest
    present,  // already stored, or being written
    refused,  // the queue or the disk has no room for it now; counted
  };

  virtual ~SegmentStore() = default;

  // A listener is informed of segments stored from now on; list() has the earlier ones. Detach a listener
  // before destroying it; its outstanding loads are forgotten.
  virtual void attach(SegmentListener& listener) = 0;
  virtual void detach(SegmentListener& listener) = 0;

  // `parts` in sequence are the segment; the caller has checked the digest. To make room it may drop other
  // segments, and reports that before it returns: those of the link with the most bytes, so that no link
  // takes more than an equal share from the others.
  virtual Put put(const SegmentName& name, std::vector<Slice> parts, std::vector<Hook> hooks) = 0;
  virtual void drop(const SegmentName& name) = 0;
  // The segments that can be loaded, of links with one of these sites at an end.
  virtual std::vector<SegmentName> list(std::span<const SiteId> sites) const = 0;

  // Appends the places of these fingerprints in segments of these links, in the order of the fingerprints;
  // several for one that is in several segments. The work is proportional to their number times that of the
  // links.
  virtual void find(std::span<const std::uint64_t> fingerprints, std::span<const SitePair> links,
                    std::vector<HookHit>& hits) = 0;
  // Loads `size` bytes from `offset`, which must be in the segment. Loading from a segment delays its
  // eviction.
  virtual LoadId load(const SegmentName& name, std::uint32_t offset, std::uint32_t size,
                      SegmentListener& listener) = 0;
};

}  // namespace longhaul::reduction
