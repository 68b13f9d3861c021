// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/object_store.h"

#include <algorithm>
#include <utility>

namespace longhaul::http {

Object ObjectStore::find(const std::string& key, const RequestHead& request) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, found->second.used);
  const auto& variants = found->second.variants;
  const auto match = std::find_if(variants.rbegin(), variants.rend(),
                                  [&](const Object& each) { return matches(*each, request); });
  return match == variants.rend() ? nullptr : *match;
}

bool ObjectStore::is_too_large(const std::string& key, const Stored& stored) const {
  return stored.memory_bytes() + 2 * key.size() + sizeof(Entry) + 64 > most_object_bytes();
}

void ObjectStore::put(const std::string& key, Stored stored) {
  if (is_too_large(key, stored)) return;
  if (behind_) behind_->put(key, stored);
  keep(key, std::move(stored));
}

void ObjectStore::keep(const std::string& key, Stored stored) {
  if (is_too_large(key, stored)) return;
  auto [place, is_new] = entries_.try_emplace(key);
  Entry& entry = place->second;
  if (is_new) {
    by_use_.push_front(key);
    entry.used = by_use_.begin();
  } else {
    by_use_.splice(by_use_.begin(), by_use_, entry.used);
  }
  std::erase_if(entry.variants, [&](const Object& each) { return each->vary == stored.vary; });
  if (entry.variants.size() == kMostVariants) entry.variants.erase(entry.variants.begin());
  entry.variants.push_back(std::make_shared<const Stored>(std::move(stored)));
  bytes_ -= entry.bytes;
  entry.bytes = 2 * key.size() + sizeof(Entry) + 64;
  for (const Object& each : entry.variants) entry.bytes += each->memory_bytes();
  bytes_ += entry.bytes;
  evict();
}

void ObjectStore::leave_room(std::uint64_t bytes) {
  left_bytes_ = std::min(bytes, most_bytes_);
  evict();
}

void ObjectStore::evict() {
  const std::uint64_t others = left_bytes_ + (behind_ ? behind_->memory_bytes() : 0);
  while (bytes_ > most_bytes_ - std::min(others, most_bytes_)) remove(entries_.find(by_use_.back()));
}

void ObjectStore::erase(const std::string& key) {
  if (behind_) behind_->erase(key);
  ++erasures_;
  erased_.push_back(std::hash<std::string>{}(key));
  if (erased_.size() > kErasuresKnown) erased_.pop_front();
  if (const auto found = entries_.find(key); found != entries_.end()) remove(found);
}

std::uint64_t ObjectStore::clear() {
  std::uint64_t bytes = std::exchange(bytes_, 0);
  if (behind_) bytes = std::max(bytes, behind_->clear());
  entries_.clear();
  by_use_.clear();
  // The number of erasures exceeds the limit: every earlier request counts as erased.
  erased_.clear();
  ++erasures_;
  return bytes;
}

bool ObjectStore::was_erased(const std::string& key, std::uint64_t since) const {
  const std::uint64_t later = erasures_ - since;
  if (later > erased_.size()) return true;
  const auto first = erased_.end() - static_cast<std::ptrdiff_t>(later);
  return std::find(first, erased_.end(), std::hash<std::string>{}(key)) != erased_.end();
}

void ObjectStore::remove(std::map<std::string, Entry>::iterator entry) {
  bytes_ -= entry->second.bytes;
  by_use_.erase(entry->second.used);
  entries_.erase(entry);
}

}  // namespace longhaul::http
