// SPDX-License-Identifier: Apache-2.0
// PIE (RFC 8033): drops arriving packets with a probability that is adapted every few milliseconds to how far
// the queue's delay is from its target, and whether it grows. Without the derandomisation of its section 5.4,
// which is optional.
#pragma once
#include "tools/wan/aqm/fifo.h"
#include "tools/wan/chance.h"

namespace longhaul::wan {

class PieQueue final : public Discipline {
 public:
  PieQueue(const AqmConfig& config, std::uint64_t seed);
  void enqueue(const QueuedPacket& packet, TimePoint now, Packets& dropped) override;
  std::optional<QueuedPacket> dequeue(TimePoint now, Packets& dropped) override;
  std::uint64_t bytes() const override { return queue_.bytes(); }
  Packets take_all() override { return queue_.take_all(); }
  void set_line(std::uint64_t rate_bits, std::uint64_t limit_bytes) override;

  double drop_probability() const { return drop_probability_; }
  Duration burst_allowance() const { return burst_allowance_; }

  static constexpr Duration kUpdate = std::chrono::milliseconds(15);     // T_UPDATE
  static constexpr Duration kMaxBurst = std::chrono::milliseconds(150);  // MAX_BURST

 private:
  void update_until(TimePoint now);
  void update();
  bool wants_to_drop();
  double delay() const;  // seconds

  bool ecn_;
  double target_;  // seconds; QDELAY_REF
  std::uint64_t limit_bytes_ = 0;
  std::uint64_t rate_bits_ = 0;
  Fifo queue_;
  Chance chance_;
  std::optional<TimePoint> next_update_;
  double drop_probability_ = 0, old_delay_ = 0;
  Duration burst_allowance_ = kMaxBurst;
};

}  // namespace longhaul::wan
