// SPDX-License-Identifier: Apache-2.0
// Finds the rate of a line that nobody described. Leaves lines with a known rate to paced_law.h.
#pragma once
#include <optional>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

struct MeasuredConfig {
  std::optional<PathMemory> memory;                       // what an earlier carrier found, a hint
  Duration initial_rtt = std::chrono::milliseconds(333);  // until one was measured
  std::uint32_t packet_bytes = 1500;                      // IP bytes of a full packet
  std::uint64_t max_rate = 0;  // bytes per second that are never exceeded; 0: no bound
};

class MeasuredLaw final : public RateLaw {
 public:
  MeasuredLaw(const MeasuredConfig& config, TimePoint now);

  void on_sample(const RateSample& sample) override;
  void on_send(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override;
  std::uint64_t pacing_rate() const override;
  std::uint64_t window() const override;
  std::uint16_t epoch() const override { return 0; }

  // For the next carrier to this peer. Nothing, if too little was sent to know.
  std::optional<PathMemory> memory() const;

 private:
  MeasuredConfig config_;
  std::uint64_t rate_;
  Duration min_rtt_;
  bool measured_ = false;
};

}  // namespace longhaul::link::udp
