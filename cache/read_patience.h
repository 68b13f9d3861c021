// SPDX-License-Identifier: Apache-2.0
// Decides whether to read from a disk: not while its oldest read is late, and not during a pause after
// several late reads in a row. Pure; the owner makes the reads.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>

namespace longhaul::cache {

class ReadPatience {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  using Number = std::uint64_t;
  // A read that takes longer is late: its requests no longer wait for it.
  static constexpr Duration kLate = std::chrono::milliseconds(200);
  static constexpr unsigned kMostLate = 3;  // in a row
  static constexpr Duration kFirstPause = std::chrono::seconds(1), kLongestPause = std::chrono::seconds(64);

  struct Counters {
    std::uint64_t late = 0;     // reads that were late
    std::uint64_t skipped = 0;  // reads that were not made
  };

  // Whether to read now. Counts the read as skipped if not.
  bool may_read(TimePoint now);
  Number begin(TimePoint now);
  // The read has returned, with or without a result.
  void end(TimePoint now, Number number);
  // The read was not made after all.
  void forget(Number number) { began_.erase(number); }

  bool is_patient(TimePoint now) const { return !is_stuck(now) && now >= paused_until_; }
  Counters counters(TimePoint now) const;

 private:
  bool is_stuck(TimePoint now) const { return !began_.empty() && now - began_.begin()->second >= kLate; }

  Number last_ = 0;
  std::map<Number, TimePoint> began_;  // of reads that have not returned
  unsigned late_in_row_ = 0;
  Duration pause_ = kFirstPause;  // the next one
  TimePoint paused_until_{};
  Counters counters_;  // `late`: of those that have returned
};

}  // namespace longhaul::cache
