// SPDX-License-Identifier: Apache-2.0
// The sending rate of a carrier: the configured or measuring law, the pacer that applies it, and the delivery
// rate of the line.
#pragma once
#include <memory>
#include <optional>

#include "proxy/link/udp/measured_law.h"
#include "proxy/link/udp/pacer.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

struct RateTerms {
  std::uint64_t rate_bits = 0;       // limit of this side, IP bytes; 0: to be measured
  std::uint64_t most_bits = 0;       // upper limit of a measured rate; 0: none
  std::optional<PathMemory> path{};  // what an earlier carrier measured on this path
  std::uint64_t seed = 0;            // so that links that share a line do not probe at the same moments
};

class CarrierRate {
 public:
  // `packet_bytes`: IP bytes of a full packet.
  CarrierRate(const RateTerms& terms, std::uint32_t packet_bytes, TimePoint now);

  // Sets the configured values. `rtt`: the measured one, if any. Returns false if nothing has changed.
  bool set(std::uint64_t rate_bits, std::uint64_t most_bits, std::optional<Duration> rtt,
           std::uint32_t packet_bytes, TimePoint now);
  void set_packet_bytes(std::uint32_t packet_bytes, TimePoint now);
  void on_sample(const RateSample& sample, TimePoint now);

  // ---- For each packet.
  bool window_admits(std::uint64_t in_flight_bytes) const { return in_flight_bytes <= law_->window(); }
  Pacer& pacer() { return pacer_; }
  void on_sent(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes);
  std::uint16_t epoch() const { return law_->epoch(); }

  std::uint64_t bytes_per_second() const { return law_->pacing_rate(); }
  std::uint64_t delivered_per_second() const { return delivery_rate_; }  // 0: not known yet
  RateView view() const { return law_->view(); }
  std::optional<PathMemory> path_memory() const { return measured_ ? measured_->memory() : terms_.path; }

 private:
  void start(std::optional<Duration> rtt, std::uint32_t packet_bytes, TimePoint now);
  void note_delivery(const RateSample& sample);

  RateTerms terms_;
  std::unique_ptr<RateLaw> law_;
  MeasuredLaw* measured_ = nullptr;  // law_, if it measures
  Pacer pacer_;
  std::uint64_t delivery_rate_ = 0;
};

}  // namespace longhaul::link::udp
