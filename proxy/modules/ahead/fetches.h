// SPDX-License-Identifier: Apache-2.0
// READs of the far half's own at the server, of one open under one stamp. Sending them and what becomes of
// their answers is left to the halves.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "codecs/interval_set.h"

namespace longhaul::ahead {

class Fetches {
 public:
  // `number`: used once, also for other opens.
  void begin(std::uint64_t number, Interval range) { fetches_.push_back({number, range}); }
  // Its answer has come. None: it was given up meanwhile.
  std::optional<Interval> take(std::uint64_t number) {
    const auto found = std::ranges::find(fetches_, number, &Fetch::number);
    if (found == fetches_.end()) return std::nullopt;
    const Interval range = found->range;
    fetches_.erase(found);
    return range;
  }
  void remove_from(IntervalSet& missing) const {
    for (const Fetch& fetch : fetches_) missing.remove(fetch.range);
  }
  // Their answers are of no use any more.
  void give_up() { fetches_.clear(); }
  std::size_t size() const { return fetches_.size(); }

 private:
  struct Fetch {
    std::uint64_t number = 0;
    Interval range;
  };
  std::vector<Fetch> fetches_;
};

}  // namespace longhaul::ahead
