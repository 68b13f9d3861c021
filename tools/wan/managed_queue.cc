// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/managed_queue.h"

#include <algorithm>

namespace longhaul::wan {

Discipline::Packets ManagedQueue::use(const AqmConfig* config, const Line& line, TimePoint now) {
  limit_bytes_ = line.limit_bytes;
  if (config && discipline_ && *config == config_) {
    discipline_->set_line(line.rate_bits, line.limit_bytes);
    return {};
  }
  Discipline::Packets waiting;
  if (discipline_) waiting = discipline_->take_all();
  discipline_.reset();
  config_.reset();
  packets_ = 0;
  if (!config) return waiting;
  config_ = *config;
  discipline_ = make_discipline(*config, seed_);
  // None of them is dropped by the change itself.
  discipline_->set_line(line.rate_bits, ~std::uint64_t{0});
  Discipline::Packets none;
  for (const QueuedPacket& packet : waiting) discipline_->enqueue(packet, now, none);
  packets_ = waiting.size();
  discipline_->set_line(line.rate_bits, line.limit_bytes);
  return {};
}

ManagedQueue::Enqueued ManagedQueue::enqueue(const QueuedPacket& packet, TimePoint at) {
  const std::size_t before = dropped_.size();
  const bool full = discipline_->bytes() + packet.bytes > limit_bytes_;
  discipline_->enqueue(packet, at, dropped_);
  enqueued_at_ = at;
  const std::size_t gone = dropped_.size() - before;
  packets_ = packets_ + 1 - gone;
  bool taken = true;
  for (std::size_t i = before; i < dropped_.size(); ++i) taken &= dropped_[i].number != packet.number;
  // The arriving packet's owner hears of it at once, and lost ones are no longer known to theirs.
  std::erase_if(dropped_, [&](const QueuedPacket& one) { return one.number == packet.number || one.lost; });
  return {taken, {gone, full ? 0 : gone}};
}

TimePoint ManagedQueue::start(TimePoint free) const { return std::max(free, enqueued_at_); }

ManagedQueue::Dequeued ManagedQueue::dequeue(TimePoint start) {
  const std::size_t before = dropped_.size();
  auto next = discipline_->dequeue(start, dropped_);
  const std::size_t gone = dropped_.size() - before;
  packets_ -= gone;
  if (next) --packets_;
  std::erase_if(dropped_, [](const QueuedPacket& packet) { return packet.lost; });
  return {std::move(next), {gone, gone}};
}

std::optional<QueuedPacket> ManagedQueue::poll_dropped() {
  if (dropped_.empty()) return std::nullopt;
  const QueuedPacket gone = dropped_.back();
  dropped_.pop_back();
  return gone;
}

}  // namespace longhaul::wan
