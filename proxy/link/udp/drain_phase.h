// SPDX-License-Identifier: Apache-2.0
// How a law that measures lets its excess leave the queue: how slowly, for how long, and not again soon
// after.
#pragma once
#include <algorithm>

#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/line_model.h"

namespace longhaul::link::udp {

class DrainPhase {
 public:
  Plan begin(TimePoint now, const LineModel& line) {
    const double wait = seconds(line.watch.queue()) / seconds(line.span());
    not_before_ = now + 4 * line.span();
    return {Phase::drain, std::clamp(1 - wait / 1.5, 0.2, 0.75), 3 * line.span() + 2 * line.watch.queue()};
  }
  // The answer to the previous drain has been seen.
  bool may_begin(TimePoint now) const { return now >= not_before_; }

  static bool is_over(const LineModel& line, std::uint64_t in_flight_bytes) {
    using namespace std::chrono_literals;
    // A few packets are little on a fast line and a queue on a slow one.
    const double few = std::clamp(line.rate() * seconds(2ms), line.packets(1), line.packets(4));
    return static_cast<double>(in_flight_bytes) <= line.rate() * seconds(line.watch.base_rtt()) + few ||
           line.watch.queue() < 2ms;
  }

 private:
  TimePoint not_before_{};
};

}  // namespace longhaul::link::udp
