// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/common_segments.h"

#include <xxhash.h>

namespace longhaul::reduction {

CommonSegments::Id CommonSegments::id_of(const SegmentName& name) {
  Buffer bytes;
  ByteWriter writer(bytes);
  write_name(name, writer);
  return XXH3_64bits(bytes.data(), bytes.size());
}

bool CommonSegments::add_own(const SegmentName& name, Whose whose) {
  const Id id = id_of(name);
  if (own(id)) return false;
  (whose == Whose::peers ? peers_ : shared_).emplace(id, name);
  join(id);
  return true;
}

bool CommonSegments::remove_own(const SegmentName& name) {
  const Id id = id_of(name);
  const SegmentName* known = own(id);
  if (!known || *known != name) return false;
  part(id);
  peers_.erase(id);
  shared_.erase(id);
  return true;
}

const SegmentName* CommonSegments::own(Id id) const {
  for (const auto* names : {&peers_, &shared_})
    if (auto found = names->find(id); found != names->end()) return &found->second;
  return nullptr;
}

std::vector<SegmentName> CommonSegments::all_own() const {
  std::vector<SegmentName> names;
  for (const auto* of : {&peers_, &shared_})
    for (const auto& [id, name] : *of) names.push_back(name);
  return names;
}

void CommonSegments::add_twins(Id id) {
  if (twins_.size() >= kMaxSegmentsOfLink || !twins_.insert(id).second) return;
  join(id);
}

void CommonSegments::remove_twins(Id id) {
  part(id);
  twins_.erase(id);
}

void CommonSegments::join(Id id) {
  const SegmentName* name = common(id);
  if (!name || !places_.insert_or_assign(place_of(*name), id).second) return;
  if (places_of_link_[name->sites()]++ == 0) links_.push_back(name->sites());
}

void CommonSegments::part(Id id) {
  const SegmentName* name = common(id);
  if (!name) return;
  auto found = places_.find(place_of(*name));
  if (found == places_.end() || found->second != id) return;
  places_.erase(found);
  auto link = places_of_link_.find(name->sites());
  if (--link->second > 0) return;
  std::erase(links_, link->first);
  places_of_link_.erase(link);
}

const SegmentName* CommonSegments::behind(const SegmentName& name) const {
  Place end = place_of(name);
  end.first += name.length;
  // The range between two segments, however large, was a repeat of earlier content.
  auto next = places_.lower_bound(end);
  if (next == places_.end()) return nullptr;
  const Place& place = next->first;
  if (place.writer != end.writer || place.reader != end.reader || place.epoch != end.epoch) return nullptr;
  return own(next->second);
}

std::uint64_t CommonSegments::memory_bytes() const {
  constexpr std::uint64_t kNode = 48;  // of a tree, including malloc's overhead
  return (peers_.size() + shared_.size()) * (sizeof(SegmentName) + sizeof(Id) + kNode) +
         twins_.size() * kNode + places_.size() * (sizeof(Place) + sizeof(Id) + kNode);
}

}  // namespace longhaul::reduction
