// SPDX-License-Identifier: Apache-2.0
// The packets that wait in a queue with management: how many there are, when the line may take the next one,
// and which were dropped. aqm/discipline.h decides which; link.h has the line, and the queue without
// management.
#pragma once
#include <memory>
#include <optional>

#include "tools/wan/aqm/discipline.h"

namespace longhaul::wan {

class ManagedQueue {
 public:
  explicit ManagedQueue(std::uint64_t seed) : seed_(seed) {}

  // Management begins, ends (null), or goes on with another line. Packets that wait stay, in the order in
  // which they came: those that this queue does not keep are returned.
  struct Line {
    std::uint64_t rate_bits = 0;
    std::uint64_t limit_bytes = 0;
  };
  Discipline::Packets use(const AqmConfig* config, const Line& line, TimePoint now);
  bool is_on() const { return discipline_ != nullptr; }

  struct Drops {
    std::uint64_t all = 0, early = 0;  // early: before the queue was full
  };
  struct Enqueued {
    bool taken = false;  // false: the packet itself was dropped
    Drops drops;
  };
  Enqueued enqueue(const QueuedPacket& packet, TimePoint at);

  // When the next packet starts on a line that is free from then on: only an arrival finds the line idle, and
  // starts at once.
  TimePoint start(TimePoint free) const;
  struct Dequeued {
    std::optional<QueuedPacket> packet;
    Drops drops;
  };
  Dequeued dequeue(TimePoint start);

  bool empty() const { return packets_ == 0; }
  std::size_t size() const { return packets_; }
  std::uint64_t bytes() const { return discipline_ ? discipline_->bytes() : 0; }

  // Packets that were dropped after they had been taken, and that their owners still know.
  bool has_dropped() const { return !dropped_.empty(); }
  std::optional<QueuedPacket> poll_dropped();

 private:
  std::uint64_t seed_;
  std::uint64_t limit_bytes_ = 0;
  std::optional<AqmConfig> config_;         // of discipline_
  std::unique_ptr<Discipline> discipline_;  // none: off
  std::size_t packets_ = 0;                 // in it
  TimePoint enqueued_at_{};                 // the newest of them
  Discipline::Packets dropped_;             // by it, and not yet reported
};

}  // namespace longhaul::wan
