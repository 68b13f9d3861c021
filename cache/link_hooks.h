// SPDX-License-Identifier: Apache-2.0
// The index of hooks for several links. It is keyed by link, so that other links' hooks are neither found nor
// evicted, and by a secret, so that no outsider can choose collisions.
#pragma once
#include <span>
#include <vector>

#include "cache/hook_index.h"
#include "codecs/reduction/segments.h"

namespace longhaul::cache {

class LinkHooks {
 public:
  using Place = HookIndex::Place;

  void insert(const reduction::SitePair& link, Slot slot, std::span<const reduction::Hook> hooks);
  // Calls found(index of the fingerprint, link, place) for each place that may have it. A wrong place may
  // belong to another link.
  template <class Found>
  void find(std::span<const std::uint64_t> fingerprints, std::span<const reduction::SitePair> links,
            Found found) const {
    std::array<Place, HookIndex::kBucket> places;
    std::vector<std::uint64_t> salts;
    for (const reduction::SitePair& link : links) salts.push_back(salt_of(link));
    for (std::uint32_t i = 0; i < fingerprints.size(); ++i)
      for (std::size_t of = 0; of < links.size(); ++of) {
        const std::size_t count = index_.find(key_of(fingerprints[i], salts[of]), places);
        for (std::size_t k = 0; k < count; ++k) found(i, links[of], places[k]);
      }
  }

  // As in HookIndex.
  void retire(Slot slot) { index_.retire(slot); }
  Slot poll_swept() { return index_.poll_swept(); }
  void clear() { index_.clear(); }
  std::size_t memory_bytes() const { return index_.memory_bytes(); }

 private:
  static std::uint64_t salt_of(const reduction::SitePair& link);
  static std::uint64_t key_of(std::uint64_t fingerprint, std::uint64_t salt);

  HookIndex index_;
};

}  // namespace longhaul::cache
