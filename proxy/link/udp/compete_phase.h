// SPDX-License-Identifier: Apache-2.0
// How a law that measures competes with traffic that fills queues, and looks now and then whether the queue
// is its own by now. How fast a competing sender is, is kept in competition.h.
#pragma once
#include <optional>

#include "proxy/link/udp/competition.h"
#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/line_model.h"

namespace longhaul::link::udp {

class CompetePhase {
 public:
  explicit CompetePhase(std::uint32_t packet_bytes) : competition_(packet_bytes) {}

  // `capacity`: of the line, ours or not; bytes per second, 0: not known.
  Plan begin(TimePoint now, const LineModel& line, double capacity);
  // Sets the line's rate. `new_round`: a round trip has passed.
  void on_sample(const RateSample& sample, LineModel& line, double capacity, bool new_round);
  // What follows the present phase, one of compete and look. `drain`: nothing else fills the queue any more.
  std::optional<Plan> next(TimePoint now, const Experiments& present, const LineModel& line);

  double window_packets() const { return competition_.window_packets(); }

 private:
  Competition competition_;
};

}  // namespace longhaul::link::udp
