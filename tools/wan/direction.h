// SPDX-License-Identifier: Apache-2.0
// One direction at work: takes frames from one port, asks the link when they come out, sends them then on the
// other. Leaves waiting to forwarder.h.
#pragma once
#include <boost/json/object.hpp>
#include <memory>
#include <vector>

#include "tools/wan/lateness.h"
#include "tools/wan/link.h"
#include "tools/wan/port.h"

namespace longhaul::wan {

// The bytes of the packets inside the line, by the id the link knows them by.
class FrameStore {
 public:
  PacketId next_id() const { return free_.empty() ? static_cast<PacketId>(frames_.size()) : free_.back(); }
  void put(std::span<const std::byte> frame);  // under next_id()
  std::span<std::byte> get(PacketId id) { return {frames_[id].bytes.get(), frames_[id].size}; }
  void forget(PacketId id);
  std::size_t bytes() const { return bytes_; }

 private:
  struct Frame {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  std::vector<Frame> frames_;
  std::vector<PacketId> free_;
  std::size_t bytes_ = 0;
};

class Direction {
 public:
  // The ports outlive the direction.
  Direction(Port& in, Port& out, const LinkConfig& config, std::uint64_t seed)
      : in_(in), out_(out), link_(config, seed) {}

  // Both work in bounded pieces, so that neither direction starves the other; true if there is more to do.
  bool take_in();
  bool send_due(TimePoint now);
  std::optional<TimePoint> next_wakeup() const { return link_.next_wakeup(); }

  void change(TimePoint at, const LinkConfig& config);
  void reseed(std::uint64_t seed) { link_.reseed(seed); }
  void lose_next(std::uint32_t packets) { link_.lose_next(packets); }
  boost::json::object to_json(TimePoint now);
  void reset_counters(TimePoint now);

 private:
  Port& in_;
  Port& out_;
  Link link_;
  FrameStore frames_;
  Lateness lateness_;
  std::uint64_t dropped_memory_ = 0;
  std::uint64_t corrupted_ = 0;
  std::vector<Departure> due_;  // kept for their capacity
  std::vector<std::span<const std::byte>> batch_;
};

}  // namespace longhaul::wan
