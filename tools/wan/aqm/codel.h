// SPDX-License-Identifier: Apache-2.0
// CoDel (RFC 8289): drops when packets leave, more and more often, while even the least delayed one of an
// interval has waited longer than the target. For one queue, alone or one of many.
#pragma once
#include "tools/wan/aqm/fifo.h"

namespace longhaul::wan {

struct CodelTimes {
  Duration target = std::chrono::milliseconds(5);
  Duration interval = std::chrono::milliseconds(100);
};
// Those of the configuration, and of RFC 8289, section 4.4, where it says nothing.
CodelTimes codel_times(const AqmConfig& config);

// The state of one queue; section 5, with its names.
class Codel {
 public:
  explicit Codel(const CodelTimes& times) : times_(times) {}

  // `mark`: called for a packet that would be dropped; true: it was marked instead.
  template <class Mark>
  std::optional<QueuedPacket> dequeue(Fifo& queue, TimePoint now, Discipline::Packets& dropped, Mark mark);
  std::uint32_t count() const { return count_; }

 private:
  static constexpr std::uint64_t kMaxPacket = 1500;
  struct Next {
    std::optional<QueuedPacket> packet;
    bool ok_to_drop = false;
  };
  Next next(Fifo& queue, TimePoint now);
  TimePoint control_law(TimePoint from) const;

  CodelTimes times_;
  std::optional<TimePoint> first_above_time_;
  TimePoint drop_next_{};
  std::uint32_t count_ = 0, last_count_ = 0;
  bool dropping_ = false;
};

template <class Mark>
std::optional<QueuedPacket> Codel::dequeue(Fifo& queue, TimePoint now, Discipline::Packets& dropped,
                                           Mark mark) {
  Next taken = next(queue, now);
  if (!taken.packet) {
    dropping_ = false;
    return std::nullopt;
  }
  if (dropping_) {
    if (!taken.ok_to_drop) dropping_ = false;
    while (dropping_ && now >= drop_next_) {
      ++count_;
      if (mark(*taken.packet)) {
        drop_next_ = control_law(drop_next_);
        break;
      }
      dropped.push_back(*taken.packet);
      taken = next(queue, now);
      if (taken.ok_to_drop)
        drop_next_ = control_law(drop_next_);
      else
        dropping_ = false;
    }
  } else if (taken.ok_to_drop) {
    if (!mark(*taken.packet)) {
      dropped.push_back(*taken.packet);
      taken = next(queue, now);
    }
    dropping_ = true;
    // Soon after the last time: at about the frequency that controlled the queue then.
    const std::uint32_t delta = count_ - last_count_;
    count_ = delta > 1 && now - drop_next_ < 16 * times_.interval ? delta : 1;
    drop_next_ = control_law(now);
    last_count_ = count_;
  }
  return taken.packet;
}

class CodelQueue final : public Discipline {
 public:
  explicit CodelQueue(const AqmConfig& config) : ecn_(config.ecn), codel_(codel_times(config)) {}
  void enqueue(const QueuedPacket& packet, TimePoint now, Packets& dropped) override;
  std::optional<QueuedPacket> dequeue(TimePoint now, Packets& dropped) override;
  std::uint64_t bytes() const override { return queue_.bytes(); }
  Packets take_all() override { return queue_.take_all(); }
  void set_line(std::uint64_t, std::uint64_t limit_bytes) override { limit_bytes_ = limit_bytes; }

 private:
  bool ecn_;
  std::uint64_t limit_bytes_ = 0;
  Fifo queue_;
  Codel codel_;
};

}  // namespace longhaul::wan
