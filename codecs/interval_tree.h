// SPDX-License-Identifier: Apache-2.0
// A set of numbers like IntervalSet, for sets in which a peer determines the number of gaps: every change
// takes logarithmic time. IntervalSet is smaller and faster if gaps are few.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "codecs/interval_set.h"

namespace longhaul {

class IntervalTree {
 public:
  bool empty() const { return intervals_.empty(); }
  std::size_t count() const { return intervals_.size(); }                                     // of intervals
  Interval front() const { return {intervals_.begin()->first, intervals_.begin()->second}; }  // if not empty
  void pop_front() { intervals_.erase(intervals_.begin()); }

  bool contains(std::uint64_t value) const {
    auto after = intervals_.upper_bound(value);
    return after != intervals_.begin() && value < std::prev(after)->second;
  }

  // Joins neighbours that touch: each of those was added once, so the time is logarithmic on average.
  void add(Interval added) {
    if (added.begin >= added.end) return;
    auto next = intervals_.upper_bound(added.begin);
    if (next != intervals_.begin() && std::prev(next)->second >= added.begin) {
      --next;
      added.begin = next->first;
    }
    while (next != intervals_.end() && next->first <= added.end) {
      added.end = std::max(added.end, next->second);
      next = intervals_.erase(next);
    }
    intervals_.emplace_hint(next, added.begin, added.end);
  }

  void remove(Interval removed) {
    if (removed.begin >= removed.end || intervals_.empty()) return;
    auto at = intervals_.upper_bound(removed.begin);
    if (at != intervals_.begin() && std::prev(at)->second > removed.begin) --at;
    while (at != intervals_.end() && at->first < removed.end) {
      const Interval old{at->first, at->second};
      at = intervals_.erase(at);
      if (old.begin < removed.begin) intervals_.emplace_hint(at, old.begin, removed.begin);
      if (old.end > removed.end) intervals_.emplace_hint(at, removed.end, old.end);
    }
  }

 private:
  std::map<std::uint64_t, std::uint64_t> intervals_;  // begin and end
};

}  // namespace longhaul
