// SPDX-License-Identifier: Apache-2.0
#include "cache/memory_store.h"

#include <algorithm>
#include <tuple>

namespace longhaul::cache {

void MemoryStore::attach(reduction::SegmentListener& listener) { listeners_.push_back(&listener); }

void MemoryStore::detach(reduction::SegmentListener& listener) { std::erase(listeners_, &listener); }

template <class Tell>
void MemoryStore::tell(Tell&& tell) {
  for (reduction::SegmentListener* listener : std::vector(listeners_))
    if (std::count(listeners_.begin(), listeners_.end(), listener)) tell(*listener);
}

MemoryStore::Put MemoryStore::put(const reduction::SegmentName& name, std::vector<Slice> parts,
                                  std::vector<reduction::Hook> hooks) {
  Held held{.bytes = {}, .hooks = std::move(hooks), .number = ++counter_};
  for (const Slice& part : parts) append(held.bytes, part.bytes());
  if (held.bytes.size() != name.length || held.bytes.empty() || held.bytes.size() > cap_bytes_)
    return Put::refused;
  if (held_.contains(name)) return Put::present;
  make_room(held.bytes.size());
  bytes_ += held.bytes.size();
  bool sound = reduction::segment_digest(parts) == name.digest;
  held_.emplace(name, std::move(held));
  todo_.push_back([this, name, sound, number = counter_] {
    auto found = held_.find(name);
    if (found == held_.end() || found->second.number != number) return;
    if (!sound) return drop(name);
    found->second.readable = true;
    tell([&](auto& listener) { listener.on_stored(name); });
  });
  return Put::taken;
}

void MemoryStore::drop(const reduction::SegmentName& name) {
  auto found = held_.find(name);
  if (found == held_.end()) return;
  bool told = found->second.readable;
  bytes_ -= found->second.bytes.size();
  held_.erase(found);
  if (told) tell([&](auto& listener) { listener.on_dropped(name); });
}

std::vector<reduction::SegmentName> MemoryStore::list() const {
  std::vector<reduction::SegmentName> names;
  for (const auto& [name, held] : held_)
    if (held.readable) names.push_back(name);
  return names;
}

std::vector<reduction::SegmentName> MemoryStore::list(std::span<const reduction::SiteId> sites) const {
  std::vector<reduction::SegmentName> names = list();
  std::erase_if(names, [&](const reduction::SegmentName& name) {
    return std::none_of(sites.begin(), sites.end(), [&](const auto& site) { return name.sites().has(site); });
  });
  return names;
}

void MemoryStore::find(std::span<const std::uint64_t> fingerprints,
                       std::span<const reduction::SitePair> links, std::vector<reduction::HookHit>& hits) {
  for (std::uint32_t i = 0; i < fingerprints.size(); ++i)
    for (const auto& [name, held] : held_) {
      if (!held.readable || std::find(links.begin(), links.end(), name.sites()) == links.end()) continue;
      for (const reduction::Hook& hook : held.hooks)
        if (hook.fingerprint == fingerprints[i])
          hits.push_back({i, name, hook.offset / reduction::kHookGranule * reduction::kHookGranule});
    }
}

reduction::LoadId MemoryStore::load(const reduction::SegmentName& name, std::uint32_t offset,
                                    std::uint32_t size, reduction::SegmentListener& listener) {
  reduction::LoadId id = ++counter_;
  todo_.push_back([this, id, name, offset, size, &listener] {
    if (std::count(listeners_.begin(), listeners_.end(), &listener) == 0) return;
    auto found = held_.find(name);
    std::optional<Slice> bytes;
    if (found != held_.end() && found->second.readable && size > 0 && offset < name.length &&
        size <= name.length - offset) {
      if (found->second.damaged) {
        drop(name);
      } else {
        found->second.stamp = ++counter_;
        bytes = Slice::copy_of(Bytes(found->second.bytes).subspan(offset, size));
      }
    }
    listener.on_loaded(id, std::move(bytes));
  });
  return id;
}

bool MemoryStore::poll() {
  if (todo_.empty()) return false;
  auto next = std::move(todo_.front());
  todo_.pop_front();
  next();
  return true;
}

void MemoryStore::damage(const reduction::SegmentName& name) {
  if (auto found = held_.find(name); found != held_.end()) found->second.damaged = true;
}

// From the link with most bytes: first the oldest that were never used, then the least recently used.
void MemoryStore::make_room(std::uint64_t bytes) {
  while (bytes_ + bytes > cap_bytes_) {
    std::map<reduction::SitePair, std::uint64_t> taken;
    for (const auto& [name, held] : held_) taken[name.sites()] += name.length;
    auto order = [&](const auto& one) {
      return std::tuple(~taken[one.first.sites()], one.second.stamp, one.second.number);
    };
    auto first = std::min_element(held_.begin(), held_.end(),
                                  [&](const auto& a, const auto& b) { return order(a) < order(b); });
    drop(reduction::SegmentName(first->first));
  }
}

}  // namespace longhaul::cache
