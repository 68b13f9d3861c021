// SPDX-License-Identifier: Apache-2.0
#include "cache/object_index.h"

#include <utility>

namespace longhaul::cache {
namespace {

constexpr std::uint64_t kObjectEntryBytes = 400;

}  // namespace

std::uint64_t ObjectIndex::disk_bytes_of(const ObjectLabel& label) {
  return cache::disk_bytes(object_file_bytes(label.bytes));
}

std::uint64_t ObjectIndex::memory_bytes_of(const ObjectLabel& label) {
  return kObjectEntryBytes + label.tag.size();
}

void ObjectIndex::add(Id id, Entry entry) {
  const ObjectLabel& label = entry.object.label;
  disk_bytes_ += disk_bytes_of(label);
  memory_bytes_ += memory_bytes_of(label);
  by_name_.emplace(label.name, id);
  const auto used = by_use_.insert(by_use_.end(), id);
  entries_.emplace(id, Node{std::move(entry), used});
}

void ObjectIndex::remove(Id id) {
  const auto found = entries_.find(id);
  const ObjectLabel& label = found->second.entry.object.label;
  disk_bytes_ -= disk_bytes_of(label);
  memory_bytes_ -= memory_bytes_of(label);
  by_name_.erase({label.name, id});
  by_use_.erase(found->second.used);
  entries_.erase(found);
}

const ObjectIndex::Entry* ObjectIndex::find(Id id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second.entry;
}

std::vector<ObjectIndex::Id> ObjectIndex::of_name(const ObjectName& name) const {
  std::vector<Id> ids;
  for (auto at = by_name_.lower_bound({name, 0}); at != by_name_.end() && at->first == name; ++at)
    ids.push_back(at->second);
  return ids;
}

void ObjectIndex::was_used(Id id) { by_use_.splice(by_use_.end(), by_use_, entries_.at(id).used); }

void ObjectIndex::doubt_all() {
  for (auto& [id, node] : entries_) node.entry.is_sure = false;
}

}  // namespace longhaul::cache
