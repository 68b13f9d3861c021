// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/measured_law.h"

#include <algorithm>

namespace longhaul::link::udp {

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint)
    : config_(config),
      rate_(config.memory ? std::max<std::uint64_t>(config.memory->rate, 1) : std::uint64_t{1'250'000}),
      min_rtt_(config.memory ? config.memory->min_rtt : config.initial_rtt) {}

void MeasuredLaw::on_sample(const RateSample& sample) {
  if (sample.rtt) min_rtt_ = measured_ ? std::min(min_rtt_, *sample.rtt) : *sample.rtt;
  measured_ = measured_ || sample.rtt.has_value();
  if (!sample.delivery || sample.delivery->interval <= Duration{0}) return;
  const double seconds = std::chrono::duration<double>(sample.delivery->interval).count();
  rate_ = std::max(
      rate_, static_cast<std::uint64_t>(static_cast<double>(sample.delivery->delivered_bytes) / seconds));
}

void MeasuredLaw::on_send(TimePoint, std::uint64_t, std::uint64_t) {}

std::uint64_t MeasuredLaw::pacing_rate() const {
  const std::uint64_t rate = rate_ + rate_ / 4;
  return config_.max_rate == 0 ? rate : std::min(rate, config_.max_rate);
}

std::uint64_t MeasuredLaw::window() const {
  const double way = std::chrono::duration<double>(min_rtt_ + std::chrono::milliseconds(10)).count();
  return static_cast<std::uint64_t>(2 * way * static_cast<double>(rate_)) + 16 * config_.packet_bytes;
}

std::optional<PathMemory> MeasuredLaw::memory() const {
  if (!measured_) return std::nullopt;
  return PathMemory{rate_, min_rtt_};
}

}  // namespace longhaul::link::udp
