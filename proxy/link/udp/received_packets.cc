// SPDX-License-Identifier: Apache-2.0
// Ranges of received numbers, kept sorted and bounded.
#include "proxy/link/udp/received_packets.h"

#include <algorithm>

namespace longhaul::link::udp {

void ReceivedPackets::on_packet(PacketNumber number, AckAsk ask, TimePoint now, TimePoint arrived) {
  const bool in_order = any_ ? number == largest_ + 1 : number == PacketNumber{};
  insert(number);
  if (!any_ || number > largest_) {
    any_ = true;
    largest_ = number;
    largest_at_ = arrived;
  }
  if (ask == AckAsk::none) return;
  ++asked_;
  // After a pause, a sender measures the line with its first packets, as at the start.
  if (now - last_asked_at_ > kPause) asked_since_pause_ = 0;
  last_asked_at_ = now;
  ++asked_since_pause_;
  // A gap, or a packet that closes one: the sender uses this to detect losses (RFC 9000, section 13.2.1).
  const bool at_once =
      ask == AckAsk::at_once || !in_order || asked_ >= kPacketsPerAck || asked_since_pause_ <= kFirstPackets;
  const Duration wait = rtt_ ? std::min<Duration>(*rtt_ / 8, kMaxDelay) : kMaxDelay;
  const TimePoint due = at_once ? now : now + wait;
  // It is not overdue before its maximum delay; a peer that measures or waits gets it at once.
  const TimePoint latest = ask == AckAsk::at_once ? now : std::min(due + kWaitForData, now + kMaxDelay);
  if (!due_ || due < *due_) due_ = due;
  if (!latest_ || latest < *latest_) latest_ = latest;
}

void ReceivedPackets::insert(PacketNumber number) {
  if (!ranges_.empty() && number == ranges_.back().last + 1) {  // nearly always
    ranges_.back().last = number;
    return;
  }
  // The first range that does not end below the number's neighbour.
  auto next = std::lower_bound(ranges_.begin(), ranges_.end(), number,
                               [](const NumberRange& range, PacketNumber n) { return range.last + 1 < n; });
  if (next == ranges_.end() || number + 1 < next->first) {
    if (ranges_.size() == kMaxRanges) {
      if (next == ranges_.begin()) return;  // older than the stored range
      std::move(ranges_.begin() + 1, next, ranges_.begin());
      *(next - 1) = {number, number};
      return;
    }
    ranges_.insert(next, {number, number});
    return;
  }
  if (number + 1 == next->first) {
    next->first = number;
  } else if (number == next->last + 1) {
    next->last = number;
    const auto above = next + 1;
    if (above != ranges_.end() && above->first == number + 1) {
      next->last = above->last;
      ranges_.erase(above);
    }
  }
}

std::optional<PacketAck> ReceivedPackets::make_ack(TimePoint now) {
  due_.reset();
  latest_.reset();
  asked_ = 0;
  if (ranges_.empty()) return std::nullopt;
  PacketAck ack;
  // An acknowledged ACK may have removed the largest number; then its stamp belongs to no listed number, and
  // the delay is better left unknown.
  ack.delay = std::max<Duration>(now - largest_at_, Duration{0});
  ack.arrival = largest_at_ - start_;
  for (auto range = ranges_.rbegin(); range != ranges_.rend() && ack.ranges.size() < kMaxAckRanges; ++range)
    ack.ranges.push_back(*range);
  return ack;
}

void ReceivedPackets::on_ack_acknowledged(PacketNumber largest) {
  // A part of the range with the largest number is kept, so that every ACK includes the number to which its
  // stamps belong.
  const PacketNumber floor = std::min(largest, largest_);
  auto kept = std::find_if(ranges_.begin(), ranges_.end(),
                           [floor](const NumberRange& range) { return range.last >= floor; });
  ranges_.erase(ranges_.begin(), kept);
  if (!ranges_.empty() && ranges_.front().first < floor) ranges_.front().first = floor;
}

}  // namespace longhaul::link::udp
