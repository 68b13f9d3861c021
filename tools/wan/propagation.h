// SPDX-License-Identifier: Apache-2.0
// Packets that are wholly sent and travel for the delay: when they come out, and in which order. link.h
// decides what is sent, and when.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <vector>

#include "tools/wan/aqm/packet.h"

namespace longhaul::wan {

class Propagation {
 public:
  struct Packet {
    TimePoint at;  // when it comes out
    std::uint64_t number = 0;
    PacketId id = 0;
    std::uint32_t bytes = 0;
    bool twice = false;
    std::optional<double> flipped_at{};
    bool marked = false;
    bool operator>(const Packet& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  // In the order of sending. Not before those sent earlier, except for packets that were held back.
  void send(Packet packet);
  // The same, but others pass it meanwhile.
  void hold_back(Packet packet, Duration time);

  struct Out {
    Packet packet;
    bool is_late = false;  // after a packet with a higher number
  };
  // The next packet that is out by `now`.
  std::optional<Out> poll(TimePoint now);
  std::optional<TimePoint> next() const;
  // When a packet comes out that would arrive at this time.
  TimePoint in_order(TimePoint at) const;
  std::size_t size() const { return in_order_.size() + held_back_.size(); }

 private:
  Out take(const Packet& packet);

  std::deque<Packet> in_order_;
  std::priority_queue<Packet, std::vector<Packet>, std::greater<>> held_back_;
  TimePoint floor_{};              // nothing in order comes out before this
  std::uint64_t highest_out_ = 0;  // number + 1
};

}  // namespace longhaul::wan
