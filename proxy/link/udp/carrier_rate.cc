// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/carrier_rate.h"

#include "proxy/link/udp/paced_law.h"
#include "proxy/link/udp/rtt_estimator.h"

namespace longhaul::link::udp {

CarrierRate::CarrierRate(const RateTerms& terms, std::uint32_t packet_bytes, TimePoint now)
    : terms_(terms), pacer_(now, 1, packet_bytes) {
  start(std::nullopt, packet_bytes, now);
}

void CarrierRate::start(std::optional<Duration> measured_rtt, std::uint32_t packet_bytes, TimePoint now) {
  const Duration guess = terms_.path ? terms_.path->min_rtt : RttEstimator::kInitial;
  const Duration rtt = measured_rtt.value_or(guess);
  measured_ = nullptr;
  if (terms_.rate_bits) {
    law_ = std::make_unique<PacedLaw>(PacedConfig{.rate = terms_.rate_bits / 8,
                                                  .initial_rtt = rtt,
                                                  .packet_bytes = packet_bytes,
                                                  .seed = terms_.seed},
                                      now);
  } else {
    auto law = std::make_unique<MeasuredLaw>(MeasuredConfig{.memory = terms_.path,
                                                            .initial_rtt = rtt,
                                                            .packet_bytes = packet_bytes,
                                                            .max_rate = terms_.most_bits / 8,
                                                            .seed = terms_.seed},
                                             now);
    measured_ = law.get();
    law_ = std::move(law);
  }
  set_packet_bytes(packet_bytes, now);
}

bool CarrierRate::set(std::uint64_t rate_bits, std::uint64_t most_bits, std::optional<Duration> rtt,
                      std::uint32_t packet_bytes, TimePoint now) {
  if (rate_bits == terms_.rate_bits && most_bits == terms_.most_bits) return false;
  terms_.path = path_memory();
  terms_.rate_bits = rate_bits;
  terms_.most_bits = most_bits;
  start(rtt, packet_bytes, now);
  return true;
}

void CarrierRate::set_packet_bytes(std::uint32_t packet_bytes, TimePoint now) {
  pacer_.set_rate(now, law_->pacing_rate());
  pacer_.set_packet_bytes(packet_bytes);
}

void CarrierRate::on_sample(const RateSample& sample, TimePoint now) {
  law_->on_sample(sample);
  set_packet_bytes(sample.full_packet_bytes, now);
  note_delivery(sample);
}

void CarrierRate::note_delivery(const RateSample& sample) {
  const auto& delivery = sample.delivery;
  if (!delivery || delivery->interval <= Duration{0}) return;
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(delivery->delivered_bytes) /
                                               seconds(delivery->interval));
  if (!delivery->application_limited || rate > delivery_rate_)
    delivery_rate_ = delivery_rate_ ? (7 * delivery_rate_ + rate) / 8 : rate;
}

void CarrierRate::on_sent(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
  const std::uint16_t epoch = law_->epoch();
  law_->on_send(now, bytes, in_flight_bytes);
  pacer_.on_sent(now, bytes);
  // The next packet is sent at another rate. (Setting the same rate again would discard what a late timer may
  // make up for.)
  if (law_->epoch() != epoch) pacer_.set_rate(now, law_->pacing_rate());
}

}  // namespace longhaul::link::udp
