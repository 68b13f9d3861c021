// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/relations.h"

#include <algorithm>
#include <functional>

namespace longhaul::http {
namespace {

std::size_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

}  // namespace

void Relations::learn(TimePoint now, std::string_view page, std::string_view target,
                      std::string_view client) {
  const auto [place, is_new] = pages_.try_emplace(hash_of(page));
  if (is_new) order_.push_back(place->first);
  std::deque<Object>& objects = place->second;
  const auto known = std::ranges::find(objects, target, &Object::target);
  if (known != objects.end()) {
    const bool is_old = now - known->seen > kLifetime;
    if (is_old) known->first_client = hash_of(client);
    known->is_of_several = !is_old && (known->is_of_several || known->first_client != hash_of(client));
    known->seen = now;
    return;
  }
  objects.push_back({.target = std::string(target), .seen = now, .first_client = hash_of(client)});
  bytes_ += bytes_of(objects.back());
  if (objects.size() > kMostOfPage) {
    const auto oldest = std::ranges::min_element(objects, {}, &Object::seen);
    bytes_ -= bytes_of(*oldest);
    objects.erase(oldest);
  }
  while (order_.size() > kMostPages || (bytes_ > kMostBytes && order_.size() > 1)) erase_oldest_page();
}

std::vector<std::string> Relations::of(TimePoint now, std::string_view page) const {
  std::vector<std::string> targets;
  const auto found = pages_.find(hash_of(page));
  if (found == pages_.end()) return targets;
  for (const Object& each : found->second)
    if (each.is_of_several && now - each.seen <= kLifetime) targets.push_back(each.target);
  return targets;
}

void Relations::forget(std::string_view page, std::string_view target) {
  const auto found = pages_.find(hash_of(page));
  if (found == pages_.end()) return;
  std::erase_if(found->second, [&](const Object& each) {
    if (each.target != target) return false;
    bytes_ -= bytes_of(each);
    return true;
  });
}

void Relations::clear() {
  pages_.clear();
  order_.clear();
  bytes_ = 0;
}

void Relations::erase_oldest_page() {
  const auto oldest = pages_.find(order_.front());
  order_.pop_front();
  for (const Object& each : oldest->second) bytes_ -= bytes_of(each);
  pages_.erase(oldest);
}

}  // namespace longhaul::http
