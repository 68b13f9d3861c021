// SPDX-License-Identifier: Apache-2.0
// Until when the near half must have confirmed that nothing more is promised under oplocks that the server
// has broken (kOplockFence): if it does not, the server's connection must end. The dialects' oplock_returns.h
// know which oplocks that concerns.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "proxy/modules/smb/half.h"

namespace longhaul::smb {

class OplockFences {
 public:
  // The server breaks the oplock of this open, or breaks it again.
  void begin(TimePoint now, const OpenKey& open) {
    waiting_.insert_or_assign(open, now + kOplockFence);
    in_order_.emplace_back(now + kOplockFence, open);
    drop_done();
  }
  // The near half has confirmed it, or need not: the open has ended.
  void done(const OpenKey& open) {
    waiting_.erase(open);
    drop_done();
  }
  std::optional<TimePoint> next_timeout() const {
    return in_order_.empty() ? std::nullopt : std::optional(in_order_.front().first);
  }
  // Returns true once for each open that was not confirmed in time.
  bool is_late(TimePoint now) {
    bool is_late = false;
    while (!in_order_.empty() && in_order_.front().first <= now) {
      is_late = true;
      done(OpenKey(in_order_.front().second));
    }
    return is_late;
  }

 private:
  void drop_done() {
    for (; !in_order_.empty(); in_order_.pop_front()) {
      const auto [until, open] = in_order_.front();
      const auto found = waiting_.find(open);
      if (found != waiting_.end() && found->second == until) return;
    }
  }

  std::map<OpenKey, TimePoint> waiting_;
  std::deque<std::pair<TimePoint, OpenKey>> in_order_;  // the same, and some that are done; the first is not
};

}  // namespace longhaul::smb
