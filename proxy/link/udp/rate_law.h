// SPDX-License-Identifier: Apache-2.0
// The sending rate of a carrier: the interface between acknowledgements (sent_packets.h) and the laws that
// set the rate (paced_law.h, measured_law.h).
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

// For arithmetic with rates, in bytes per second.
inline double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// All bytes here are IP bytes: the UDP payload + 8 (UDP) + 20 (IPv4) or 40 (IPv6).

// A law stamps packets with the number of its current phase, and receives their fates by this number.
struct EpochTally {
  std::uint16_t epoch = 0;
  std::int64_t acked_bytes = 0;  // negative numbers revise earlier ones: spurious losses
  std::int64_t lost_bytes = 0;
  std::int32_t loss_runs = 0;  // of consecutive lost packets: how bursty loss is
};

// The line's delivery between the arrivals of two packets, by the receiver's clock.
struct DeliveryRate {
  std::uint64_t delivered_bytes = 0;   // known to have arrived
  std::uint64_t dispatched_bytes = 0;  // sent between the two packets, including lost ones
  Duration interval{0};                // the longer of the times at the sender and at the receiver; > 0
  Duration arrival_interval{0};        // at the receiver alone
  bool application_limited = false;    // there was too little to send: a lower bound of the line's capacity
};

// One ACK, or one timeout that detected losses.
struct RateSample {
  TimePoint now{};
  std::uint64_t acked_bytes = 0;      // newly
  std::uint64_t lost_bytes = 0;       // newly
  std::uint64_t spurious_bytes = 0;   // declared lost earlier, now found to have arrived
  std::uint64_t in_flight_bytes = 0;  // after this event
  std::optional<Duration> rtt;  // of the largest number, if newly acknowledged; without the peer's ACK delay
  std::optional<Duration>
      forward_delay;    // arrival - sent of the same packet; two clocks: only differences count
  TimePoint sent_at{};  // of that packet
  std::uint64_t dispatched_bytes = 0;     // ever sent, that packet included
  std::uint32_t packet_bytes = 0;         // of that packet
  std::uint32_t full_packet_bytes = 0;    // of a full one, now
  std::uint16_t sent_epoch = 0;           // of that packet
  std::optional<DeliveryRate> delivery;   // over DeliveryMeter::kMinTrain at least
  std::optional<DeliveryRate> beginning;  // the same for the beginning of a busy period, in its place
  std::uint64_t round =
      0;  // number of the round trip: increases when a packet sent after the last step is acknowledged
  std::span<const EpochTally> epochs;  // valid during the call
};

// A law's estimate of its line, for display.
struct RateView {
  // told: sends at the configured rate. guarded: the line does not carry the configured rate; measures below
  // it.
  enum class Law : std::uint8_t { told, guarded, measured };
  Law law = Law::measured;
  const char* phase = "";            // of the current experiment
  std::uint64_t line_rate = 0;       // bytes per second of ours that the line delivers
  std::optional<Duration> base_rtt;  // without a queue
  Duration queue{0};                 // the current one
  bool competes = false;             // shares the line with traffic that fills queues
  bool policed = false;              // the line drops excess packets instead of queueing them
};

class RateLaw {
 public:
  virtual ~RateLaw() = default;

  virtual void on_sample(const RateSample& sample) = 0;
  // To be called before a packet is passed to SentPackets; `in_flight_bytes` excludes it. By this a law
  // detects that a sender starts again after a pause.
  virtual void on_send(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) = 0;

  virtual std::uint64_t pacing_rate() const = 0;  // bytes per second, never 0
  virtual std::uint64_t window() const = 0;       // bytes in flight
  virtual std::uint16_t epoch() const = 0;        // for packets sent now

  virtual RateView view() const = 0;
};

// Stored measurements of a path whose carrier has ended; a hint that must be verified.
struct PathMemory {
  std::uint64_t rate = 0;  // bytes per second
  Duration min_rtt{0};
  double trust = 1;  // share of the rate to begin with: less if it was measured before the daemon's start
};

}  // namespace longhaul::link::udp
