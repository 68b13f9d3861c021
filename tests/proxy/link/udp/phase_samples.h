// SPDX-License-Identifier: Apache-2.0
// A line and samples of it, for the tests of the phases of a law that measures.
#pragma once
#include "proxy/link/udp/line_model.h"

namespace longhaul::link::udp {

inline const TimePoint kPhaseStart = TimePoint{} + std::chrono::hours(1);
inline constexpr double kPhaseRate = 1e6;  // bytes per second
inline constexpr Duration kPhaseRtt = std::chrono::milliseconds(100);

struct PhaseLine {
  LineModel line{{.initial_rtt = kPhaseRtt, .rate = kPhaseRate}, kPhaseStart};
  TimePoint now = kPhaseStart;

  // A full packet that waited for `queue`.
  RateSample sample(Duration queue = Duration{0}) const {
    RateSample sample;
    sample.now = now;
    sample.rtt = kPhaseRtt + queue;
    sample.forward_delay = kPhaseRtt / 2 + queue;
    sample.sent_at = now - *sample.rtt;
    sample.packet_bytes = sample.full_packet_bytes = 1500;
    return sample;
  }
  // `time` passes with a packet each millisecond.
  void pass(Duration queue, Duration time) {
    for (const TimePoint end = now + time; now < end; now += std::chrono::milliseconds(1))
      line.on_sample(sample(queue), {});
  }
  // The same with enough to send: the line is busy, and delivers `rate` of ours.
  void deliver(Duration queue, double rate, Duration time) {
    constexpr Duration kEach = std::chrono::milliseconds(5);
    for (const TimePoint end = now + time; now < end; now += kEach) {
      RateSample at = measured(rate);
      at.rtt = kPhaseRtt + queue;
      at.forward_delay = kPhaseRtt / 2 + queue;
      at.acked_bytes = static_cast<std::uint64_t>(rate * seconds(kEach));
      line.on_sample(at, {});
      line.standing.watch_mean(now, line.watch.queue(), line.span());
    }
  }
  // The queue grows step by step, as that of other traffic does.
  void grow(Duration queue, double rate) {
    for (Duration now_long{0}; now_long < queue; now_long += std::chrono::milliseconds(1))
      deliver(now_long, rate, std::chrono::milliseconds(5));
  }
  // Full packets were carried at `rate`.
  RateSample measured(double rate, std::uint16_t epoch = 0) const {
    RateSample at = sample();
    at.sent_epoch = epoch;
    const auto bytes = static_cast<std::uint64_t>(rate / 10);
    const Duration time = std::chrono::milliseconds(100);
    at.delivery = DeliveryRate{bytes, bytes, time, time, false};
    return at;
  }
};

}  // namespace longhaul::link::udp
