// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/cruise_phase.h"

#include <algorithm>

namespace longhaul::link::udp {

Plan CruisePhase::begin(TimePoint now, const LineModel& line, bool growing) {
  const double spans = growing ? 0.5 : (line.share() < 0.8 ? 1.5 : 3) + 2 * chance();
  return begin(now, LineModel::times(line.span(), spans));
}

Plan CruisePhase::begin(TimePoint now, Duration time) {
  since_ = now;
  return {Phase::cruise, 1, time};
}

double CruisePhase::gain(const LineModel& line) {
  const double error = seconds(line.kept_queue() - line.watch.queue());
  return 1 + std::clamp(error / (4 * seconds(line.span())), -0.05, 0.02);
}

CruisePhase::Next CruisePhase::next(TimePoint now, const LineModel& line) const {
  if (line.tests.is_due(now, line.span())) return Next::test;
  if (line.is_calm() || now > since_ + 8 * line.span()) return Next::probe;
  // Not at once when it is calm: other links wait for that too, and links that speed up together learn
  // nothing.
  return Next::wait;
}

bool CruisePhase::may_ease(TimePoint now, const LineModel& line) const {
  return line.watch.queue() > line.kept_queue() + LineModel::times(line.span(), line.step_size()) &&
         now - eased_at_ > line.span() * 4 / 5;
}

void CruisePhase::ease(TimePoint now, LineModel& line) {
  eased_at_ = now;
  const double excess = seconds(line.watch.queue() - line.kept_queue());
  line.set_rate(line.rate() * (1 - std::min(0.1, 0.25 * excess / seconds(line.span()))));
}

}  // namespace longhaul::link::udp
