// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/aqm/codel.h"

#include <cmath>

namespace longhaul::wan {

CodelTimes codel_times(const AqmConfig& config) {
  CodelTimes times;
  if (config.target > Duration{0}) times.target = config.target;
  if (config.interval > Duration{0}) times.interval = config.interval;
  return times;
}

Codel::Next Codel::next(Fifo& queue, TimePoint now) {
  Next taken{queue.pop(), false};
  if (!taken.packet) {
    first_above_time_.reset();
    return taken;
  }
  if (now - taken.packet->arrived < times_.target || queue.bytes() <= kMaxPacket) {
    first_above_time_.reset();  // it stays below for at least an interval
  } else if (!first_above_time_) {
    first_above_time_ = now + times_.interval;
  } else {
    taken.ok_to_drop = now >= *first_above_time_;
  }
  return taken;
}

TimePoint Codel::control_law(TimePoint from) const {
  return from + Duration{static_cast<Duration::rep>(static_cast<double>(times_.interval.count()) /
                                                    std::sqrt(static_cast<double>(count_)))};
}

void CodelQueue::enqueue(const QueuedPacket& packet, TimePoint, Packets& dropped) {
  if (queue_.bytes() + packet.bytes > limit_bytes_)
    dropped.push_back(packet);
  else
    queue_.push(packet);
}

std::optional<QueuedPacket> CodelQueue::dequeue(TimePoint now, Packets& dropped) {
  return codel_.dequeue(queue_, now, dropped, [this](QueuedPacket& packet) { return mark(packet, ecn_); });
}

}  // namespace longhaul::wan
