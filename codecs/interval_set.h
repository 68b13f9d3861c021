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

  // Whether the two have a number in common.
  bool overlaps(Interval other) const {
    auto first = std::lower_bound(intervals_.begin(), intervals_.end(), other.begin,
                                  [](const Interval& i, std::uint64_t v) { return i.end <= v; });
    return first != intervals_.end() && first->begin < other.end && other.begin < other.end;
  }

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
    if (removed.begin >= removed.end) return;
    auto first = std::lower_bound(intervals_.begin(), intervals_.end(), removed.begin,
                                  [](const Interval& i, std::uint64_t v) { return i.end <= v; });
    if (first == intervals_.end() || first->begin >= removed.end) return;
    if (first->begin < removed.begin) {
      Interval left{first->begin, removed.begin};
      if (first->end > removed.end) {
        first->begin = removed.end;
        intervals_.insert(first, left);
        return;
      }
      *first++ = left;
    }
    auto last = first;
    while (last != intervals_.end() && last->end <= removed.end) ++last;
    if (last != intervals_.end()) last->begin = std::max(last->begin, removed.end);
    intervals_.erase(first, last);
  }

 private:
  std::vector<Interval> intervals_;
};

}  // namespace longhaul
