// SPDX-License-Identifier: Apache-2.0
// Packets in order, and their bytes.
#pragma once
#include <deque>

#include "tools/wan/aqm/discipline.h"

namespace longhaul::wan {

class Fifo {
 public:
  void push(const QueuedPacket& packet) {
    packets_.push_back(packet);
    bytes_ += packet.bytes;
  }
  std::optional<QueuedPacket> pop() {
    if (packets_.empty()) return std::nullopt;
    const QueuedPacket first = packets_.front();
    packets_.pop_front();
    bytes_ -= first.bytes;
    return first;
  }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t size() const { return packets_.size(); }
  bool empty() const { return packets_.empty(); }
  Discipline::Packets take_all() {
    bytes_ = 0;
    Discipline::Packets all(packets_.begin(), packets_.end());
    packets_.clear();
    return all;
  }

 private:
  std::deque<QueuedPacket> packets_;
  std::uint64_t bytes_ = 0;
};

}  // namespace longhaul::wan
