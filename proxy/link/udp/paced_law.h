// SPDX-License-Identifier: Apache-2.0
// Sends at the configured rate from the first packet, and detects that the line does not carry it: a
// persistent queue, or loss that decreases with the rate. Then MeasuredLaw controls the rate, below the
// configured one, until the line carries it again.
#pragma once
#include <optional>

#include "proxy/link/udp/measured_law.h"

namespace longhaul::link::udp {

struct PacedConfig {
  std::uint64_t rate = 0;                                 // IP bytes per second, as configured
  Duration initial_rtt = std::chrono::milliseconds(333);  // until one is measured
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
  std::uint16_t epoch() const override { return guard_ ? guard_->epoch() : epoch_; }
  RateView view() const override;

  // Whether the line does not carry the configured rate, or recently did not.
  bool guarded() const { return guard_.has_value(); }
  const MeasuredLaw* guard() const { return guard_ ? &*guard_ : nullptr; }

 private:
  enum class Trial : std::uint8_t { none, slow, waiting };

  void watch_queue(const RateSample& sample);
  void watch_loss(TimePoint now);
  void begin_guard(TimePoint now, double rate);
  void end_guard(TimePoint now);
  Duration span() const;
  Duration trial_time() const;
  double told() const { return static_cast<double>(config_.rate); }

  PacedConfig config_;
  LineWatch watch_;
  LossByRate losses_;
  std::optional<LossByRate> losses_before_doubt_;
  WindowedMaximum<Duration> max_rtt_{std::chrono::seconds(30)};
  std::uint16_t epoch_ = 0;
  std::array<LossByRate::Level, 8> levels_{};  // of the latest epochs
  std::optional<TimePoint> queue_since_;       // a persistent queue exists since then
  BusyRate busy_;                              // the line's rate meanwhile

  // A lower rate is tested for a round trip.
  Trial trial_ = Trial::none;
  double trial_gain_ = 1;
  TimePoint trial_until_{};
  TimePoint next_trial_{};
  Duration trial_interval_{0};
  double tried_loss_ = 0.12;  // at the start a little loss does not start a test: most transfers are short
  double least_arrived_ = 0;  // bytes per second, in the latest round trip
  TimePoint aged_at_{};

  std::optional<MeasuredLaw> guard_;
  std::optional<TimePoint> fits_since_;  // the line carries the configured rate since then
};

}  // namespace longhaul::link::udp
