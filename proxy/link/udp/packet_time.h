// SPDX-License-Identifier: Apache-2.0
// Estimates the rate of a slow line from the delays of single packets: a large packet takes longer than a
// small one. Probes of two sizes measure it before the first transfer.
#pragma once
#include <chrono>
#include <optional>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class PacketTime {
 public:
  void on_sample(const RateSample& sample) {
    if (!sample.forward_delay || sample.packet_bytes == 0) return;
    if (sample.packet_bytes > kSmall && sample.packet_bytes < kLarge) return;
    auto& of_size = sample.packet_bytes >= kLarge ? large_ : small_;
    const Duration delay = *sample.forward_delay;
    if (!of_size || delay < of_size->delay) of_size = {sample.packet_bytes, delay};
  }

  // Bytes per second; nullopt unless packets of both sizes are known and take different times.
  std::optional<double> rate() const {
    if (!large_ || !small_ || large_->delay - small_->delay < kLeast) return std::nullopt;
    return static_cast<double>(large_->bytes - small_->bytes) / seconds(large_->delay - small_->delay);
  }

 private:
  static constexpr std::uint32_t kLarge = 1000, kSmall = 300;        // IP bytes
  static constexpr Duration kLeast = std::chrono::milliseconds(10);  // less is jitter

  struct Shortest {
    std::uint32_t bytes = 0;
    Duration delay{0};
  };
  std::optional<Shortest> large_, small_;
};

}  // namespace longhaul::link::udp
