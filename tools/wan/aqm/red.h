// SPDX-License-Identifier: Apache-2.0
// RED (Floyd and Jacobson, 1993), with its gentle variant (Floyd, 2000): drops arriving packets with a
// probability that follows the average queue. Thresholds come from how much may wait: a twelfth and a
// quarter.
#pragma once
#include "tools/wan/aqm/fifo.h"
#include "tools/wan/chance.h"

namespace longhaul::wan {

class RedQueue final : public Discipline {
 public:
  RedQueue(const AqmConfig& config, std::uint64_t seed) : ecn_(config.ecn), chance_(seed, 8) {}
  void enqueue(const QueuedPacket& packet, TimePoint now, Packets& dropped) override;
  std::optional<QueuedPacket> dequeue(TimePoint now, Packets& dropped) override;
  std::uint64_t bytes() const override { return queue_.bytes(); }
  Packets take_all() override { return queue_.take_all(); }
  void set_line(std::uint64_t rate_bits, std::uint64_t limit_bytes) override;

  double average() const { return average_; }
  double least() const { return least_; }
  double most() const { return most_; }
  // Of a packet, by the average queue, before the packets since the last drop are counted.
  static double probability(double average, double least, double most);

  static constexpr double kWeight = 0.002;
  static constexpr double kMaxProbability = 0.1;

 private:
  bool wants_to_drop();

  bool ecn_;
  std::uint64_t limit_bytes_ = 0;
  std::uint64_t rate_bits_ = 0;
  double least_ = 0, most_ = 0;  // thresholds, bytes
  Fifo queue_;
  Chance chance_;
  double average_ = 0;
  int count_ = -1;  // packets since the last drop; -1: the average is below the least
  std::optional<TimePoint> idle_since_;
};

}  // namespace longhaul::wan
