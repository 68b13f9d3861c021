// SPDX-License-Identifier: Apache-2.0
// How a law that measures tests whether losses depend on the rate: much slower for a round trip, and what
// follows for the rate if less is lost then. When a test is due and what it has found is kept in
// loss_tests.h.
#pragma once
#include <algorithm>

#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/line_model.h"

namespace longhaul::link::udp {

class TestPhase {
 public:
  // At the line's rate, bytes per second arrived.
  void on_arrivals(double rate) { arrived_ = rate; }
  // The line's rate is another one now.
  void forget_arrivals() { arrived_ = 0; }

  // `in_pieces`: the application sends one piece per round trip, too little to decide in one.
  static Plan begin(LineModel& line, bool in_pieces) {
    LossByRate& losses = line.tests.losses();
    losses.age(0.5);
    const double gain = LossByRate::trial_gain(losses.total_loss());
    const Duration usual = LineModel::times(line.span(), in_pieces ? 3 : 1);
    // If a round trip carries far too few packets to decide, the test lasts longer.
    const double enough = losses.seconds_for_enough(gain * line.rate());
    const bool few = enough > 4 * seconds(usual);
    return {
        Phase::test, gain,
        few ? std::max(usual, LineModel::times(kLongest, std::min(enough / seconds(kLongest), 1.))) : usual};
  }
  // The answer to a test takes a round trip after the test's end.
  static bool is_answered(TimePoint now, TimePoint ended, const LineModel& line) {
    return now >= ended + line.span() + line.span() / 4;
  }
  // True: the line drops what is too much for it, and the rate was lowered.
  bool finish(TimePoint now, LineModel& line) const {
    const auto policed = line.tests.finish(now, line.span());
    if (!policed) return false;
    // What arrives at full rate is what the line carries, but for the loss that slowness did not avoid. If
    // that is much it may not have been slow enough. If the arrival rate was not measured, or was measured
    // while the line stood still, the rate that avoided losses is used.
    const double rate = line.rate(), avoids = rate * policed->lower;
    line.set_rate(arrived_ > 0
                      ? std::clamp(arrived_ / (1 - std::min(policed->random_loss, 0.6)), avoids, rate)
                      : avoids);
    return true;
  }

 private:
  static constexpr Duration kLongest = std::chrono::seconds(10);

  double arrived_ = 0;  // bytes per second, lately
};

}  // namespace longhaul::link::udp
