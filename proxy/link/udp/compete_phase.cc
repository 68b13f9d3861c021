// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/compete_phase.h"

#include <algorithm>

namespace longhaul::link::udp {

Plan CompetePhase::begin(TimePoint now, const LineModel& line, double capacity) {
  // At least half of what the line carries: two is the least that there can be of us.
  const double rate = std::max(line.rate(), capacity / 2);
  competition_.begin(now, line.watch, line.tests.losses().random_loss(), rate, line.span());
  return {Phase::compete};
}

void CompetePhase::on_sample(const RateSample& sample, LineModel& line, double capacity, bool new_round) {
  line.set_rate(competition_.on_sample(sample, line.watch, capacity, line.queue_target(), new_round));
}

std::optional<Plan> CompetePhase::next(TimePoint now, const Experiments& present, const LineModel& line) {
  using Next = Competition::Next;
  const Next next = present.in(Phase::compete)
                        ? competition_.while_competing(now, line.watch, line.queue_target(), line.span())
                        : competition_.while_looking(now, present.ends(), line.watch, line.span());
  if (next == Next::look) return Plan{Phase::look, 0.5, competition_.look_time(line.watch)};
  if (next == Next::compete) return Plan{Phase::compete};
  if (next == Next::stop) return Plan{Phase::drain};
  return std::nullopt;
}

}  // namespace longhaul::link::udp
