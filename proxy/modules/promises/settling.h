// SPDX-License-Identifier: Apache-2.0
// When the near half reports that no promise for an open is outstanding any more (Settled): some time after
// the last one, so that a file that is written steadily needs no message, and a failed near proxy casts doubt
// only on files that were written recently. The halves know what is outstanding.
#pragma once
#include <chrono>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "codecs/keyed_hash.h"
#include "proxy/link/types.h"
#include "proxy/modules/promises/messages.h"

namespace longhaul::promises {

class Settling {
 public:
  static constexpr auto kQuietFor = std::chrono::seconds(2);

  // A write of this open was promised, or may be from now on.
  void active(const OpenKey& open, link::TimePoint now) {
    const auto [entry, is_new] = last_.insert_or_assign(open, now);
    if (is_new) queue_.emplace_back(now + kQuietFor, open);
  }
  void forget(const OpenKey& open) { last_.erase(open); }
  // A WRITE of an open that was reported as settled is sent to the server; its response shows that the far
  // half has received it, and knows that more may be promised.
  void passed_after(MessageNumber number) { reviving_.insert(number); }
  bool revives(MessageNumber number) { return reviving_.erase(number) != 0; }

  std::optional<link::TimePoint> next_timeout() const {
    return queue_.empty() ? std::nullopt : std::optional(queue_.front().first);
  }
  // An open that was inactive for that long; it is forgotten.
  std::optional<OpenKey> poll_quiet(link::TimePoint now) {
    while (!queue_.empty() && queue_.front().first <= now) {
      const OpenKey open = queue_.front().second;
      queue_.pop_front();
      const auto found = last_.find(open);
      if (found == last_.end()) continue;
      if (const auto due = found->second + kQuietFor; due > now) {
        queue_.emplace_back(due, open);
        continue;
      }
      last_.erase(found);
      return open;
    }
    return std::nullopt;
  }

 private:
  std::unordered_map<OpenKey, link::TimePoint, OpenKeyHash> last_;
  KeyedSet<MessageNumber> reviving_;
  std::deque<std::pair<link::TimePoint, OpenKey>> queue_;  // at least one entry for each of last_
};

}  // namespace longhaul::promises
