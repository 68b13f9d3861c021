// SPDX-License-Identifier: Apache-2.0
// The segments that this side has for its peer, those that the twin has announced, and therefore those that
// both can load. peer_segments.h checks access, disk_tier.h informs the twin.
#pragma once
#include <map>

#include "codecs/keyed_hash.h"
#include "codecs/reduction/segments.h"

namespace longhaul::reduction {

class CommonSegments {
 public:
  using Id = std::uint64_t;  // the id on the wire
  static Id id_of(const SegmentName& name);

  // This side can load the segment now. It belongs to the peer, or to another one that shares it. Returns
  // false if another segment with that id is here (ids are short, and a writer may choose its names); then
  // this one is ignored.
  enum class Whose { peers, shared };
  bool add_own(const SegmentName& name, Whose whose);
  // Returns false if it was not here.
  bool remove_own(const SegmentName& name);
  // Null if this side does not have it.
  const SegmentName* own(Id id) const;
  // One of the peer's own; null if there is none.
  const SegmentName* any_of_peers() const { return peers_.empty() ? nullptr : &peers_.begin()->second; }
  std::vector<SegmentName> all_own() const;
  std::size_t peers_count() const { return peers_.size(); }

  // Ids that this side does not have are stored too: it may be about to store their segments. At most
  // kMaxSegmentsOfLink; more are ignored.
  void add_twins(Id id);
  void remove_twins(Id id);

  // Null unless both sides have the segment.
  const SegmentName* common(Id id) const { return twins_.contains(id) ? own(id) : nullptr; }
  // The next segment of the same history that both sides have, at this one's end or after it.
  const SegmentName* behind(const SegmentName& name) const;
  // The links to which the segments belong: nearly always the one between the two sites.
  const std::vector<SitePair>& links() const { return links_; }
  bool empty() const { return places_.empty(); }
  std::size_t size() const { return places_.size(); }
  std::uint64_t memory_bytes() const;

 private:
  struct Place {  // of a segment in its history
    SiteId writer, reader;
    std::uint64_t epoch, first;
    auto operator<=>(const Place&) const = default;
  };
  static Place place_of(const SegmentName& name) {
    return {name.writer, name.reader, name.epoch, name.first};
  }
  void join(Id id);
  void part(Id id);

  std::map<Id, SegmentName> peers_, shared_;
  KeyedSet<Id> twins_;
  std::map<Place, Id> places_;  // segments that both have
  std::map<SitePair, std::size_t> places_of_link_;
  std::vector<SitePair> links_;  // of these segments
};

}  // namespace longhaul::reduction
