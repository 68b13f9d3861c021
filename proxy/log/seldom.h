// SPDX-License-Identifier: Apache-2.0
// Limits the logging of events that outsiders can cause to one line per minute and source, so that the log
// cannot be flooded. The caller counts the events.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace longhaul::log {

class Seldom {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kPause{1};
  static constexpr std::size_t kKeys = 1024;  // with so many in use, others are not logged

  bool may_write(std::string_view key, TimePoint now) {
    if (const auto found = next_.find(key); found != next_.end()) {
      if (now < found->second) return false;
      found->second = now + kPause;
      return true;
    }
    if (next_.size() >= kKeys) std::erase_if(next_, [&](const auto& entry) { return entry.second <= now; });
    if (next_.size() >= kKeys) return false;
    next_.emplace(key, now + kPause);
    return true;
  }

 private:
  std::map<std::string, TimePoint, std::less<>> next_;  // earliest time of the key's next line
};

}  // namespace longhaul::log
