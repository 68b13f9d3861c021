// SPDX-License-Identifier: Apache-2.0
// What the far half pushed for one open since the near half last reported what it had received. From this,
// both halves determine which of them serves a READ. The halves decide what is fetched and pushed.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include "codecs/interval_set.h"
#include "proxy/modules/ahead/messages.h"

namespace longhaul::ahead {

class Pushes {
 public:
  // An Ahead message of this range is sent. `end_of_file`: as in the message.
  void add(Interval range, Stamp stamp, std::optional<std::uint64_t> end_of_file) {
    pushes_.push_back({++told_, range, stamp, end_of_file});
  }
  // The near half has received that many of them.
  void seen(std::uint64_t told) {
    while (!pushes_.empty() && pushes_.front().number <= told) pushes_.pop_front();
  }
  // Removes what the near half will have received by these messages.
  void remove_from(IntervalSet& missing, Stamp stamp) const {
    for (const Push& push : pushes_) {
      if (push.stamp != stamp) continue;
      missing.remove(push.range);
      if (push.end_of_file) missing.remove({*push.end_of_file, ~0ull});
    }
  }
  // The oldest are forgotten, and will be fetched again if they are missing.
  void keep_at_most(std::size_t count) {
    while (pushes_.size() > count) pushes_.pop_front();
  }

  std::size_t size() const { return pushes_.size(); }
  std::uint64_t told() const { return told_; }  // Ahead messages since the open

 private:
  struct Push {
    std::uint64_t number = 0;
    Interval range;
    Stamp stamp;
    std::optional<std::uint64_t> end_of_file;
  };
  std::deque<Push> pushes_;
  std::uint64_t told_ = 0;
};

}  // namespace longhaul::ahead
