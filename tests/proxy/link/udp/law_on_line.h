// SPDX-License-Identifier: Apache-2.0
// One flow of endless data on one line, under one of the two laws, in virtual time with the real loss
// detection and pacing.
#pragma once
#include <memory>

#include "proxy/link/udp/measured_law.h"
#include "proxy/link/udp/paced_law.h"
#include "tests/proxy/link/udp/bulk_model.h"

namespace longhaul::link::udp::law_on_line {
using namespace longhaul::simulator;
using namespace std::chrono_literals;

inline constexpr double kRate = 51.84e6;  // bits per second

struct Path {
  double bits = kRate;
  Duration rtt = 100ms;
  double loss = 0;
  std::uint64_t queue_bytes = 0;  // 0: what the line carries in a round trip, 64 KiB at least
  Duration jitter{0};             // each packet is late by up to so much, order is kept
};

inline DirectionConfig direction(const Path& path) {
  const double round_trip = path.bits / 8 * std::chrono::duration<double>(path.rtt).count();
  const auto queue = path.queue_bytes
                         ? path.queue_bytes
                         : std::max<std::uint64_t>(65536, static_cast<std::uint64_t>(round_trip));
  return {.link = {.rate_bits = static_cast<std::uint64_t>(path.bits),
                   .queue_bytes = queue,
                   .delay = path.rtt / 2 + path.jitter / 2,
                   .jitter = path.jitter / 2,
                   .loss = path.loss}};
}

inline std::unique_ptr<RateLaw> measured(TimePoint now, std::uint64_t seed = 1) {
  return std::make_unique<MeasuredLaw>(MeasuredConfig{.seed = seed}, now);
}
inline std::unique_ptr<RateLaw> paced(double bits, TimePoint now, std::uint64_t seed = 1) {
  return std::make_unique<PacedLaw>(PacedConfig{.rate = static_cast<std::uint64_t>(bits / 8), .seed = seed},
                                    now);
}
inline std::unique_ptr<RateLaw> warm(double bits, Duration rtt, TimePoint now) {
  return std::make_unique<MeasuredLaw>(
      MeasuredConfig{.memory = PathMemory{static_cast<std::uint64_t>(bits / 8), rtt}}, now);
}

// One flow on one line.
struct Run {
  enum class Law { paced, measured, warm };
  Run(const Path& at, Law law, double told = kRate, std::uint64_t seed = 1)
      : path(at),
        network(seed),
        line(network.add_line(LineConfig::symmetric(direction(path)))),
        flow(network, line, 1,
             law == Law::paced      ? paced(told, network.now())
             : law == Law::measured ? measured(network.now())
                                    : warm(told, path.rtt, network.now()),
             path.rtt),
        start(network.now()) {}

  void change(const Path& to) {
    path = to;
    line.a_to_b().change(direction(to));
    line.b_to_a().change(direction(to));
  }
  // Of what the line can carry, in the time to come.
  double share(Duration time) {
    const TimePoint from = network.now();
    flow.sender.reset_rtt();
    network.run_for(time);
    return flow.rate(from, network.now()) / (path.bits * (1 - path.loss));
  }
  double rtt_p99() const { return flow.sender.rtt_ms().percentile(99); }
  double rtt_limit() const { return 1.25 * std::chrono::duration<double, std::milli>(path.rtt).count() + 5; }
  // Round trips until the line's rate leaves the sender.
  double round_trips_to(double part) const {
    const Duration window = std::max<Duration>(path.rtt / 4, 10ms);
    for (TimePoint at = start; at < network.now(); at += 1ms) {
      if (flow.rate(at, at + window) >= part * path.bits * (1 - path.loss))
        return std::chrono::duration<double>(at - start - path.rtt / 2) /
               std::chrono::duration<double>(path.rtt);
    }
    return 1000;
  }

  Path path;
  Network network;
  Line& line;
  BulkFlow flow;
  TimePoint start;
};
using Law = Run::Law;

}  // namespace longhaul::link::udp::law_on_line
