// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/peer_segments.h"

#include <cassert>

namespace longhaul::reduction {

PeerSegments::PeerSegments(SegmentStore& all, const SiteId& site, SegmentRights rights,
                           SegmentListener& listener)
    : all_(all), site_(site), listener_(listener) {
  set_rights(std::move(rights));
  all_.attach(*this);
}

PeerSegments::~PeerSegments() { all_.detach(*this); }

void PeerSegments::set_rights(SegmentRights rights) {
  rights_ = std::move(rights);
  // This side is an end of every link: if it counted as a peer, it could read everything.
  std::erase(rights_.own, site_);
  std::erase(rights_.shared, site_);
}

void PeerSegments::tell_all() {
  std::vector<SiteId> sites = rights_.own;
  sites.insert(sites.end(), rights_.shared.begin(), rights_.shared.end());
  for (const SegmentName& name : all_.list(sites)) on_stored(name);
}

PeerSegments::Put PeerSegments::put(const SegmentName& name, Slice bytes, std::vector<Hook> hooks) {
  assert(belongs(name));
  return all_.put(name, {std::move(bytes)}, std::move(hooks));
}

void PeerSegments::drop(const SegmentName& name) {
  assert(belongs(name));
  all_.drop(name);
}

void PeerSegments::find(std::span<const std::uint64_t> fingerprints, std::span<const SitePair> links,
                        std::vector<HookHit>& hits) {
  all_.find(fingerprints, links, hits);
  assert(std::all_of(hits.begin(), hits.end(), [&](const HookHit& hit) { return may_read(hit.name); }));
}

LoadId PeerSegments::load(const SegmentName& name, std::uint32_t offset, std::uint32_t size) {
  assert(may_read(name));
  return all_.load(name, offset, size, *this);
}

void PeerSegments::on_stored(const SegmentName& name) {
  if (may_read(name)) listener_.on_stored(name);
}

void PeerSegments::on_dropped(const SegmentName& name) {
  if (may_read(name)) listener_.on_dropped(name);
}

void PeerSegments::on_loaded(LoadId load, std::optional<Slice> bytes) {
  listener_.on_loaded(load, std::move(bytes));
}

}  // namespace longhaul::reduction
