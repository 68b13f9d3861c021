// SPDX-License-Identifier: Apache-2.0
// Sends at the rate that the operator gave. Leaves lines that nobody described to measured_law.h.
#pragma once
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

struct PacedConfig {
  std::uint64_t rate = 0;                                 // IP bytes per second, as told
  Duration initial_rtt = std::chrono::milliseconds(333);  // until one was measured
  std::uint32_t packet_bytes = 1500;                      // IP bytes of a full packet
  std::uint64_t seed = 1;                                 // so that two links do not probe at the same time
};

class PacedLaw final : public RateLaw {
 public:
  PacedLaw(const PacedConfig& config, TimePoint now);

  void on_sample(const RateSample& sample) override;
  void on_send(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override;
  std::uint64_t pacing_rate() const override;
  std::uint64_t window() const override;
  std::uint16_t epoch() const override { return 0; }

 private:
  PacedConfig config_;
  Duration max_rtt_;
};

}  // namespace longhaul::link::udp
