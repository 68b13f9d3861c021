// SPDX-License-Identifier: Apache-2.0
// Estimates the random loss of a path and its burstiness over some seconds. Losses while there is a queue are
// congestion and are handled by the rate law.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace longhaul::fec {

struct LossReport {
  std::uint32_t delivered = 0;  // packets newly acknowledged
  std::uint32_t lost = 0;       // packets newly declared lost
  std::uint32_t bursts = 0;     // runs of adjacent packet numbers that the lost ones form
  bool queue_stood = false;     // there was a queue on the path meanwhile, or its limit was reached
};

class LossEstimate {
 public:
  void add(std::chrono::steady_clock::time_point now, const LossReport& report);

  double rate() const { return rate_; }  // 0 until a few losses were reported

  // How much longer bursts are than expected by chance: 1 for independent losses.
  double clustering() const { return std::max(1.0, burst_length_ * (1 - rate_)); }

 private:
  // Sums with exponential decay.
  struct Sums {
    double packets = 0;
    double lost = 0;
    double bursts = 0;
    void fade(double factor);
    void add(const LossReport& report);
    double rate() const { return packets > 0 ? lost / packets : 0; }
  };

  Sums slow_;
  Sums fast_;
  std::optional<std::chrono::steady_clock::time_point> last_;
  double rate_ = 0;
  double burst_length_ = 1;  // mean, at least 1
};

}  // namespace longhaul::fec
