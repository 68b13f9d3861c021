// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/aqm/red.h"

#include <algorithm>
#include <cmath>

namespace longhaul::wan {

void RedQueue::set_line(std::uint64_t rate_bits, std::uint64_t limit_bytes) {
  rate_bits_ = rate_bits;
  limit_bytes_ = limit_bytes;
  most_ = static_cast<double>(limit_bytes) / 4;
  least_ = most_ / 3;
}

double RedQueue::probability(double average, double least, double most) {
  if (average < least) return 0;
  if (average < most) return kMaxProbability * (average - least) / (most - least);
  return std::min(1., kMaxProbability + (1 - kMaxProbability) * (average - most) / most);
}

// The paper's figure 2: drops are spread evenly rather than thrown one by one.
bool RedQueue::wants_to_drop() {
  const double each = probability(average_, least_, most_);
  if (average_ < least_) {
    count_ = -1;
    return false;
  }
  ++count_;
  const double left = 1 - count_ * each;
  const double now = left > 0 ? std::min(1., each / left) : 1;
  if (!chance_.happens(now)) return false;
  count_ = 0;
  return true;
}

void RedQueue::enqueue(const QueuedPacket& packet, TimePoint now, Packets& dropped) {
  if (queue_.empty() && idle_since_) {
    // As if so many small packets had come to an empty queue.
    constexpr double kPacketBits = 1500 * 8;
    const double packets = std::chrono::duration<double>(now - *idle_since_).count() *
                           static_cast<double>(rate_bits_) / kPacketBits;
    average_ *= std::pow(1 - kWeight, packets);
    idle_since_.reset();
  } else {
    average_ += kWeight * (static_cast<double>(queue_.bytes()) - average_);
  }
  QueuedPacket taken = packet;
  const bool full = queue_.bytes() + packet.bytes > limit_bytes_;
  if (full || (wants_to_drop() && !(average_ < most_ && mark(taken, ecn_))))
    dropped.push_back(packet);
  else
    queue_.push(taken);
  if (queue_.empty()) idle_since_ = now;  // the average falls on, or a line could drop everything for good
}

std::optional<QueuedPacket> RedQueue::dequeue(TimePoint now, Packets&) {
  auto packet = queue_.pop();
  if (queue_.empty() && !idle_since_) idle_since_ = now;
  return packet;
}

}  // namespace longhaul::wan
