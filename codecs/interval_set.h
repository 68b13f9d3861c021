// SPDX-License-Identifier: Apache-2.0
// A set of numbers kept as disjoint, sorted, half-open intervals: which bytes were lost, which ids are
// finished.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace longhaul {

struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // one past the last
  std::uint64_t size() const { return end - begin; }
  bool operator==(const Interval&) const = default;
};

class IntervalSet {
 public:
  bool empty() const { return intervals_.empty(); }
  const std::vector<Interval>& intervals() const { return intervals_; }

  bool contains(std::uint64_t value) const {
    auto after = std::upper_bound(intervals_.begin(), intervals_.end(), value,
                                  [](std::uint64_t v, const Interval& i) { return v < i.begin; });
    return after != intervals_.begin() && value < std::prev(after)->end;
  }

  void add(Interval added) {
    if (added.begin >= added.end) return;
    // Neighbours that touch are joined, so the set stays as small as it can be.
    auto first = std::lower_bound(intervals_.begin(), intervals_.end(), added.begin,
                                  [](const Interval& i, std::uint64_t v) { return i.end < v; });
    auto last = first;
    for (; last != intervals_.end() && last->begin <= added.end; ++last) {
      added.begin = std::min(added.begin, last->begin);
      added.end = std::max(added.end, last->end);
    }
    if (first == last) {
      intervals_.insert(first, added);
    } else {
      *first = added;
      intervals_.erase(first + 1, last);
    }
  }

  void remove(Interval removed) {
    // Mostly there is nothing: that must cost no allocation.
    if (removed.begin >= removed.end || intervals_.empty()) return;
    std::vector<Interval> kept;
    kept.reserve(intervals_.size() + 1);
    for (const Interval& i : intervals_) {
      if (i.begin < std::min(i.end, removed.begin)) kept.push_back({i.begin, std::min(i.end, removed.begin)});
      if (std::max(i.begin, removed.end) < i.end) kept.push_back({std::max(i.begin, removed.end), i.end});
    }
    intervals_ = std::move(kept);
  }

 private:
  std::vector<Interval> intervals_;
};

}  // namespace longhaul
