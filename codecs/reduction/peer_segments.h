// SPDX-License-Identifier: Apache-2.0
// Limits a peer to the segments of its own link and of the links of peers that share with it. A session uses
// the store only through this class. The daemon decides which peers share.
#pragma once
#include "codecs/reduction/segments.h"

namespace longhaul::reduction {

// The sites whose segments a peer may read. Knowing a segment's name gives no right to read it.
struct SegmentRights {
  std::vector<SiteId> own;     // the peer itself, by each of its keys
  std::vector<SiteId> shared;  // other peers, of a group that the operator has configured
};

class PeerSegments final : private SegmentListener {
 public:
  using Put = SegmentStore::Put;

  // `site` is this side's. The listener is informed only of segments that the peer may read; both outlive
  // this object.
  PeerSegments(SegmentStore& all, const SiteId& site, SegmentRights rights, SegmentListener& listener);
  ~PeerSegments() override;
  PeerSegments(const PeerSegments&) = delete;
  PeerSegments& operator=(const PeerSegments&) = delete;

  bool may_read(const SegmentName& name) const { return belongs(name) || is_of(rights_.shared, name); }
  // Whether the segment belongs to the peer itself, which may then have it dropped.
  bool belongs(const SegmentName& name) const { return is_of(rights_.own, name); }

  // As in the store. Segments that are put belong to the peer; only those can be dropped.
  Put put(const SegmentName& name, Slice bytes, std::vector<Hook> hooks);
  void drop(const SegmentName& name);
  // Does not notify the listener.
  void set_rights(SegmentRights rights);
  // The listener is informed of each segment that the peer may read.
  void tell_all();
  // The links whose segments the peer may read.
  void find(std::span<const std::uint64_t> fingerprints, std::span<const SitePair> links,
            std::vector<HookHit>& hits);
  LoadId load(const SegmentName& name, std::uint32_t offset, std::uint32_t size);

 private:
  static bool is_of(const std::vector<SiteId>& sites, const SegmentName& name) {
    return std::any_of(sites.begin(), sites.end(),
                       [&](const SiteId& site) { return site == name.writer || site == name.reader; });
  }
  void on_stored(const SegmentName& name) override;
  void on_dropped(const SegmentName& name) override;
  void on_loaded(LoadId load, std::optional<Slice> bytes) override;

  SegmentStore& all_;
  SiteId site_;
  SegmentRights rights_;
  SegmentListener& listener_;
};

}  // namespace longhaul::reduction
