// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/queue_answer.h"

#include <algorithm>

namespace longhaul::link::udp {

// What arrived meanwhile was ours, not the line's rate.
std::optional<QueueAnswer> QueueAnswer::to_ended_doubt(TimePoint now, LineModel& line) {
  if (!line.standing.came_at_once(line.watch) || !line.standing.believes_standstills(now, line.span()))
    return std::nullopt;
  return QueueAnswer{Kind::standstill};
}

std::optional<QueueAnswer> QueueAnswer::to_measured(TimePoint now, LineModel& line) {
  if (line.watch.doubts() || line.watch.queue() <= line.queue_limit()) return std::nullopt;
  if (line.stood_still(now)) return QueueAnswer{Kind::standstill};
  // The line became slower, or other traffic started.
  if (const auto busy = line.busy_rate();
      busy && *busy < 0.9 * line.rate() && line.standing.may_give_way(now, line.span()))
    return QueueAnswer{Kind::give_way, *busy};
  return std::nullopt;
}

std::optional<QueueAnswer> QueueAnswer::to_excess(TimePoint now, LineModel& line) {
  if (line.overflows() && line.standing.came_at_once(line.watch)) {
    if (!line.busy_rate()) return std::nullopt;  // soon it will be known
    if (line.stood_still(now)) return QueueAnswer{Kind::standstill};
  }
  return QueueAnswer{Kind::ease};
}

std::optional<QueueAnswer> QueueAnswer::to_standing(TimePoint now, LineModel& line) {
  const auto busy = line.busy_rate();
  if (!busy || line.watch.doubts() || !line.standing.persists(now, line.queue_target(), line.span()) ||
      !line.overflows())
    return std::nullopt;
  if (!line.standing.may_give_way(now, line.span())) return QueueAnswer{Kind::follow};
  return QueueAnswer{Kind::give_way, std::min(line.rate(), *busy)};
}

}  // namespace longhaul::link::udp
