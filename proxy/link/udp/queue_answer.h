// SPDX-License-Identifier: Apache-2.0
// How a law that measures answers a queue that it does not keep on purpose. Decisions only: PhaseOrder
// carries them out.
#pragma once
#include <cstdint>
#include <optional>

#include "proxy/link/udp/line_model.h"

namespace longhaul::link::udp {

struct QueueAnswer {
  enum class Kind : std::uint8_t {
    standstill,  // the line stood still: its queue drains, and its rate stays
    give_way,    // the queue drains, and the law continues at `rate`
    follow,      // the line's rate as it varies, or find out that others fill the queue
    ease,        // a little slower
  };
  Kind kind = Kind::ease;
  double rate = 0;  // bytes per second

  // Each returns nullopt if the queue needs no answer, or is not understood yet.

  // A doubt about a longer path has just ended: it was a queue.
  static std::optional<QueueAnswer> to_ended_doubt(TimePoint now, LineModel& line);
  // The rate was measured, and a drain may begin.
  static std::optional<QueueAnswer> to_measured(TimePoint now, LineModel& line);
  // The queue is longer than this sender's steps make it.
  static std::optional<QueueAnswer> to_excess(TimePoint now, LineModel& line);
  // To a queue that persists, at any time but while it drains.
  static std::optional<QueueAnswer> to_standing(TimePoint now, LineModel& line);
};

}  // namespace longhaul::link::udp
