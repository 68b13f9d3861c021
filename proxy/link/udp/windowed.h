// SPDX-License-Identifier: Apache-2.0
// The minimum or maximum within a sliding time window, in bounded memory: when the best value expires, its
// successor is accurate to a fraction of the window.
#pragma once
#include <deque>
#include <functional>
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

template <class T, class Better>
class WindowedBest {
 public:
  explicit WindowedBest(Duration window) : window_(window) {}

  // `now` never decreases.
  void add(TimePoint now, T value) {
    while (!kept_.empty() && !Better{}(kept_.back().value, value)) kept_.pop_back();
    // A worse value shortly after a better one would be the result only for that instant.
    if (kept_.empty() || kept_.back().at + window_ / kSlices <= now) kept_.push_back({now, value});
    advance(now);
  }
  // Drops values that are too old, but never the last one.
  void advance(TimePoint now) {
    while (kept_.size() > 1 && kept_.front().at + window_ < now) kept_.pop_front();
  }
  void set_window(Duration window) { window_ = window; }

  std::optional<T> value() const {
    if (kept_.empty()) return std::nullopt;
    return kept_.front().value;
  }

  static constexpr int kSlices = 32;

 private:
  struct Entry {
    TimePoint at;
    T value;
  };
  Duration window_;
  std::deque<Entry> kept_;  // from the best to the newest
};

template <class T>
using WindowedMinimum = WindowedBest<T, std::less<T>>;
template <class T>
using WindowedMaximum = WindowedBest<T, std::greater<T>>;

}  // namespace longhaul::link::udp
