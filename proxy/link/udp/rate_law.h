// SPDX-License-Identifier: Apache-2.0
// How fast a carrier may send: the interface between acknowledgements (sent_packets.h) and the laws that
// set the rate (paced_law.h, measured_law.h).
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

// For arithmetic with rates, in bytes per second.
inline double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// All bytes here are IP bytes: the payload of UDP + 8 + 20 (IPv4) or 40 (IPv6).

// A law stamps the packets it allows with the number of its current experiment, and learns their fate.
struct EpochTally {
  std::uint16_t epoch = 0;
  std::int64_t acked_bytes = 0;  // negative numbers revise earlier ones: losses that were none
  std::int64_t lost_bytes = 0;
  std::int32_t loss_runs = 0;  // of packets lost in sequence: how bursty loss is
};

// The line's delivery between the arrivals of two packets, by the receiver's clock.
struct DeliveryRate {
  std::uint64_t delivered_bytes = 0;   // known to have arrived
  std::uint64_t dispatched_bytes = 0;  // sent from the one packet to the other, the lost ones included
  Duration interval{0};                // the longer of what passed at the sender and at the receiver; > 0
  Duration arrival_interval{0};        // at the receiver alone
  bool application_limited = false;    // there was too little to send: a lower bound of the line's capacity
};

// One ACK, or one timer that found losses.
struct RateSample {
  TimePoint now{};
  std::uint64_t acked_bytes = 0;      // newly
  std::uint64_t lost_bytes = 0;       // newly
  std::uint64_t spurious_bytes = 0;   // declared lost earlier, now found to have arrived
  std::uint64_t in_flight_bytes = 0;  // after this event
  std::optional<Duration> rtt;  // of the largest number, if newly acknowledged; without the peer's delay
  std::optional<Duration>
      forward_delay;    // arrival - sent of the same packet; two clocks: only differences count
  TimePoint sent_at{};  // of that packet
  std::uint64_t dispatched_bytes = 0;     // ever sent, that packet included
  std::uint32_t packet_bytes = 0;         // of that packet
  std::uint32_t full_packet_bytes = 0;    // of a full one, now
  std::uint16_t sent_epoch = 0;           // of that packet
  std::optional<DeliveryRate> delivery;   // over DeliveryMeter::kMinTrain at least
  std::optional<DeliveryRate> beginning;  // the first of that time after a pause, in its place
  std::uint64_t round =
      0;  // counts round trips: one more when a packet sent after the last step is acknowledged
  std::span<const EpochTally> epochs;  // valid during the call
};

// A law's estimate of its line, for display.
struct RateView {
  // Sends at the configured rate; configured higher than the line carries, and measures below it; measures.
  enum class Law : std::uint8_t { told, guarded, measured };
  Law law = Law::measured;
  const char* phase = "";            // of its experiments
  std::uint64_t line_rate = 0;       // bytes per second of ours that the line carries
  std::optional<Duration> base_rtt;  // without a queue
  Duration queue{0};                 // what stands now
  bool competes = false;             // beside traffic that fills queues
  bool policed = false;              // the line drops excess packets, without a queue
};

class RateLaw {
 public:
  virtual ~RateLaw() = default;

  virtual void on_sample(const RateSample& sample) = 0;
  // Before a packet is passed to SentPackets; `in_flight_bytes` without it. With this a law detects that a
  // sender starts again after a pause.
  virtual void on_send(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) = 0;

  virtual std::uint64_t pacing_rate() const = 0;  // bytes per second, never 0
  virtual std::uint64_t window() const = 0;       // bytes in flight
  virtual std::uint16_t epoch() const = 0;        // for the packets sent now

  virtual RateView view() const = 0;
};

// What is remembered of a path after its carrier ended; a hint, never trusted.
struct PathMemory {
  std::uint64_t rate = 0;  // bytes per second
  Duration min_rtt{0};
  double trust = 1;  // share of the rate to begin with: less if it was measured before the daemon's start
};

}  // namespace longhaul::link::udp
