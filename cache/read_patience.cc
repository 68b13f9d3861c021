// SPDX-License-Identifier: Apache-2.0
#include "cache/read_patience.h"

#include <algorithm>

namespace longhaul::cache {

bool ReadPatience::may_read(TimePoint now) {
  if (is_patient(now)) return true;
  ++counters_.skipped;
  return false;
}

ReadPatience::Number ReadPatience::begin(TimePoint now) {
  began_.emplace_hint(began_.end(), ++last_, now);
  return last_;
}

void ReadPatience::end(TimePoint now, Number number) {
  const auto read = began_.extract(number);
  if (read.empty()) return;
  if (now - read.mapped() < kLate) {
    late_in_row_ = 0;
    pause_ = kFirstPause;
    return;
  }
  ++counters_.late;
  // Those that were begun before the pause say nothing new.
  if (++late_in_row_ < kMostLate || now < paused_until_) return;
  paused_until_ = now + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

ReadPatience::Counters ReadPatience::counters(TimePoint now) const {
  Counters counters = counters_;
  counters.late += static_cast<std::uint64_t>(
      std::ranges::count_if(began_, [&](const auto& each) { return now - each.second >= kLate; }));
  return counters;
}

}  // namespace longhaul::cache
