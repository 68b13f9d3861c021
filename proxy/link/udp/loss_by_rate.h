// SPDX-License-Identifier: Apache-2.0
// Distinguishes loss that depends on the rate (a policer, a very short queue) from loss at any rate, by
// comparing packets that are deliberately sent faster and slower.
#pragma once
#include <array>
#include <cstdint>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class LossByRate {
 public:
  enum class Level : std::uint8_t { low, normal, high };

  explicit LossByRate(std::uint32_t packet_bytes) : packet_bytes_(packet_bytes) {}

  // The fate of bytes sent at `rate`.
  void add(Level level, double rate, const EpochTally& tally);
  // Ages the samples: call it periodically. Of packets at the usual rate enough to decide remain, however few
  // are sent in a round trip.
  void age(double factor = 0.75);
  // The time in which enough packets are sent at `rate`.
  double seconds_for_enough(double rate) const { return kEnoughPackets * packet_bytes_ / rate; }
  void clear() { cells_ = {}; }

  // Whether more was lost at the higher rate than at the lower one, beyond chance, and by as much as on a
  // line that delivers a fixed rate and drops the rest.
  bool depends_on_rate() const;
  // How much slower to send to find out whether loss depends on the rate; if nearly everything is lost, at
  // the arrival rate.
  static double trial_gain(double loss) {
    return loss < 0.15 ? 0.75 : 0.9 * (1 - loss < 0.03 ? 0.03 : 1 - loss);
  }
  // Whether enough packets of both kinds were sent to decide.
  bool decided() const;
  bool enough(Level level) const { return cell(level).bytes() >= kEnoughPackets * packet_bytes_; }
  // Share of packets lost at any rate.
  double random_loss() const;
  double loss(Level level) const;
  double total_loss() const;

 private:
  struct Cell {
    double acked = 0;  // bytes
    double lost = 0;
    double rate_sum = 0;  // byte-weighted
    double runs = 0;
    double bytes() const { return acked + lost; }
    double loss() const { return bytes() > 0 ? lost / bytes() : 0; }
    double rate() const { return bytes() > 0 ? rate_sum / bytes() : 0; }
  };
  const Cell& cell(Level level) const { return cells_[static_cast<std::size_t>(level)]; }
  Cell faster() const;

  static constexpr double kEnoughPackets = 60;
  std::uint32_t packet_bytes_;
  std::array<Cell, 3> cells_{};
};

}  // namespace longhaul::link::udp
