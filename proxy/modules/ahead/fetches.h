// SPDX-License-Identifier: Apache-2.0
// The far half's own READs to the server, for one open and one stamp. The halves send them and use the
// responses.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "codecs/interval_set.h"

namespace longhaul::ahead {

class Fetches {
 public:
  // `number`: never reused, not even for another open.
  void begin(std::uint64_t number, Interval range) { fetches_.push_back({number, range}); }
  // The response has arrived. Returns nullopt if the READ was given up meanwhile.
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
  // Later responses are of no use.
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
