// SPDX-License-Identifier: Apache-2.0
// How a law that measures sends some packets at once to learn what the line carries in total, and how their
// excess leaves the queue. When a burst is worth it and what it shows is kept in line_share.h.
#pragma once
#include <algorithm>

#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/line_model.h"

namespace longhaul::link::udp {

struct BurstPhase {
  static bool is_wanted(TimePoint now, const LineModel& line) {
    return line.sharing.wants_burst(now, line.rate(), line.watch, line.queue_target());
  }
  // After the law has begun the plan it calls on_begun().
  static Plan begin(const LineModel& line) {
    const double rate = line.sharing.burst_rate(line.rate());
    const Duration time = LineModel::times(std::chrono::seconds(2), bytes(line) / rate);
    return {Phase::burst, rate / line.rate(), std::max(line.span(), time)};
  }
  static void on_begun(TimePoint now, std::uint16_t epoch, LineModel& line) {
    line.sharing.begin_burst(now, epoch, line.rate(), line.watch);
  }
  // What the burst put into the queue leaves it.
  static Plan rest(const LineModel& line) {
    return {Phase::rest, 0.5, LineModel::times(std::chrono::seconds(1), 2 * bytes(line) / line.rate())};
  }

 private:
  static double bytes(const LineModel& line) { return line.sharing.burst_bytes(line.rate(), line.watch); }
};

}  // namespace longhaul::link::udp
