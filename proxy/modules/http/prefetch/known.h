// SPDX-License-Identifier: Apache-2.0
// What the near sides and their clients received recently, so that it is not pushed again. Bounded; a
// forgotten entry costs an unnecessary prefetch.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "proxy/link/types.h"

namespace longhaul::http {

class Known {
 public:
  static constexpr std::size_t kMost = 32 * 1024;

  void note(std::string_view key, link::TimePoint until) {
    const std::size_t name = std::hash<std::string_view>{}(key);
    const auto [place, is_new] = until_.try_emplace(name, until);
    if (!is_new) {
      place->second = std::max(place->second, until);
      return;
    }
    order_.push_back(name);
    if (order_.size() <= kMost) return;
    until_.erase(order_.front());
    order_.pop_front();
  }
  bool has(std::string_view key, link::TimePoint now) const {
    const auto found = until_.find(std::hash<std::string_view>{}(key));
    return found != until_.end() && now < found->second;
  }
  void clear() {
    until_.clear();
    order_.clear();
  }

 private:
  std::unordered_map<std::size_t, link::TimePoint> until_;
  std::deque<std::size_t> order_;
};

}  // namespace longhaul::http
