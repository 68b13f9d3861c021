// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/paced_law.h"

#include <algorithm>

namespace longhaul::link::udp {

PacedLaw::PacedLaw(const PacedConfig& config, TimePoint) : config_(config), max_rtt_(config.initial_rtt) {}

void PacedLaw::on_sample(const RateSample& sample) {
  if (sample.rtt) max_rtt_ = std::max(max_rtt_, *sample.rtt);
}

void PacedLaw::on_send(TimePoint, std::uint64_t, std::uint64_t) {}

std::uint64_t PacedLaw::pacing_rate() const { return std::max<std::uint64_t>(config_.rate, 1); }

// Twice what is on the way at the rate, so that lost ACKs do not stop the sender.
std::uint64_t PacedLaw::window() const {
  const double way = std::chrono::duration<double>(max_rtt_ + std::chrono::milliseconds(50)).count();
  return static_cast<std::uint64_t>(2 * way * static_cast<double>(pacing_rate())) + 16 * config_.packet_bytes;
}

}  // namespace longhaul::link::udp
