// SPDX-License-Identifier: Apache-2.0
// How a law that measures sends at the line's rate between its experiments: for how long, how it keeps a
// minimal queue, and how it eases when there is more. The phases that follow are left to the law.
#pragma once
#include <optional>
#include <random>

#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/line_model.h"

namespace longhaul::link::udp {

class CruisePhase {
 public:
  // `seed`: so that two links do not probe at the same time.
  explicit CruisePhase(std::uint64_t seed) : random_(static_cast<std::minstd_rand::result_type>(seed)) {}

  // `growing`: the next faster step follows soon.
  Plan begin(TimePoint now, const LineModel& line, bool growing);
  // For as long as given.
  Plan begin(TimePoint now, Duration time);
  Duration lasted(TimePoint now) const { return now - since_; }
  // Of the line's rate, so that the queue stays as short as it is meant to be.
  static double gain(const LineModel& line);

  // What follows a cruise that has lasted for its time.
  enum class Next : std::uint8_t {
    test,   // of what losses depend on
    probe,  // a faster step
    wait,   // for a calmer queue, for `pause()`
  };
  Next next(TimePoint now, const LineModel& line) const;
  Duration pause(const LineModel& line) { return LineModel::times(line.span(), 0.3 + chance()); }

  // The queue is longer than this sender's steps make it, and the last answer to it was long enough ago: all
  // links that share a queue see the same one and back off by the same share; once per phase, however short
  // the round trip is.
  bool may_ease(TimePoint now, const LineModel& line) const;
  void ease(TimePoint now, LineModel& line);

 private:
  double chance() { return static_cast<double>(random_() % 1024) / 1024; }

  std::minstd_rand random_;
  TimePoint since_{};
  TimePoint eased_at_{};
};

}  // namespace longhaul::link::udp
