// SPDX-License-Identifier: Apache-2.0
// Records which packets are in flight, acknowledged or lost (RFC 9002). The owner stores the packets' content
// and gives each packet a handle; delivery_meter.h measures the delivery rate; a RateLaw sets the rate.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include "codecs/result.h"
#include "proxy/link/udp/ack_check.h"
#include "proxy/link/udp/delivery_meter.h"
#include "proxy/link/udp/outgoing_packet.h"
#include "proxy/link/udp/packet_ack.h"
#include "proxy/link/udp/reordering.h"
#include "proxy/link/udp/rtt_estimator.h"
#include "proxy/link/udp/sent_events.h"

namespace longhaul::link::udp {

struct SentCounters {
  std::uint64_t sent_packets = 0;
  std::uint64_t acked_packets = 0;
  std::uint64_t lost_packets = 0;
  std::uint64_t spurious_losses = 0;
};

class SentPackets {
 public:
  // Stamps of forward delays count from `start`. `rtt`: from an earlier measurement of the path.
  explicit SentPackets(TimePoint start, Duration initial_rtt = RttEstimator::kInitial);

  // The number of the next packet; numbers have no gaps.
  PacketNumber next_number() const { return next_; }
  void on_sent(PacketNumber number, TimePoint now, const OutgoingPacket& packet);
  // The owner has nothing to send. A pacer or a window that delays packets is not a pause.
  void on_idle() { delivery_.on_idle(); }
  // The owner was this much later than the pacer's time. A little does not affect measurements over a round
  // trip.
  void on_missed(Duration time) {
    if (time > std::max<Duration>(kMinTrain / 2, rtt_.smoothed() / 4)) on_idle();
  }

  // Overwrites `events`. An error ends the carrier; then nothing was changed. `arrived` is when the ACK
  // reached this host, which may have been busy until `now`.
  Result<void> on_ack(const PacketAck& ack, TimePoint arrived, TimePoint now, SentEvents& events);
  Result<void> on_ack(const PacketAck& ack, TimePoint now, SentEvents& events) {
    return on_ack(ack, now, now, events);
  }

  // For losses by time, and probes. Returns nullopt if nothing is in flight.
  std::optional<TimePoint> next_timeout() const;
  // Overwrites `events`; a call too early is harmless. Afterwards the next timeout is later than `now`.
  void on_timeout(TimePoint now, SentEvents& events);

  // The handle of a packet whose fate is unknown.
  std::optional<std::uint32_t> content_in_flight(PacketNumber number) const {
    if (number < base_ || number >= next_) return std::nullopt;
    const Entry& found = entries_[number - base_];
    if (found.state != State::in_flight || found.kind == PacketKind::ack_only) return std::nullopt;
    return found.content;
  }

  // The handles of packets whose fate is unknown, in the order of sending.
  template <class Visit>
  void visit_in_flight(Visit&& visit) const {
    for (const Entry& each : entries_)
      if (each.state == State::in_flight && each.kind == PacketKind::data) visit(each.content);
  }
  // When the oldest of them was sent. Not to be called for every packet: it iterates over those that follow a
  // lost one.
  std::optional<TimePoint> oldest_in_flight() const {
    for (const Entry& each : entries_)
      if (each.state == State::in_flight && each.kind == PacketKind::data) return each.sent;
    return std::nullopt;
  }

  // The carrier ends: all packets whose fate is unknown are lost.
  void abandon(SentEvents& events);

  // When the newest packet with a reported arrival was sent.
  TimePoint newest_acknowledged() const { return largest_acked_sent_; }
  // The fate of all packets below is known, as far as losses are concerned.
  PacketNumber settled_below() const { return std::max(scan_, base_); }
  std::uint64_t bytes_in_flight() const { return in_flight_bytes_; }
  std::size_t packets_in_flight() const { return in_flight_packets_; }
  const RttEstimator& rtt() const { return rtt_; }
  const SentCounters& counters() const { return counters_; }
  unsigned timeouts_in_a_row() const { return timeouts_; }  // without a new acknowledgement

  static constexpr unsigned kPacketThreshold = 3;
  static constexpr Duration kMaxAckDelay = std::chrono::milliseconds(25);
  // an immediate ACK from a busy host
  static constexpr Duration kPromptAckDelay = std::chrono::milliseconds(2);
  static constexpr Duration kMaxProbeInterval = std::chrono::seconds(3);
  static constexpr Duration kMinTrain = DeliveryMeter::kMinTrain;

 private:
  enum class State : std::uint8_t { in_flight, acked, lost };
  struct Entry {
    TimePoint sent;
    DeliveryMeter::Stamp stamp;
    std::uint32_t content;
    std::uint16_t epoch;
    PacketKind kind;
    State state;
    std::uint32_t bytes() const { return stamp.bytes; }
  };

  Entry& entry(PacketNumber number) { return entries_[number - base_]; }
  void acknowledge_new(const PacketAck& ack, TimePoint now, SentEvents& events);
  void acknowledge(PacketNumber first, PacketNumber last, TimePoint overtaken, TimePoint now,
                   SentEvents& events);
  void detect_losses(TimePoint now, SentEvents& events);
  void lose(PacketNumber number, SentEvents& events);
  void finish(SentEvents& events) const;
  void forget(TimePoint now);
  Duration time_threshold(TimePoint now) const;
  TimePoint probe_at() const;

  TimePoint start_;
  RttEstimator rtt_;
  Reordering reordering_;
  SentCounters counters_;

  PacketNumber base_;  // of entries_.front()
  PacketNumber next_;
  PacketNumber scan_;  // no packet below is in flight
  std::deque<Entry> entries_;
  std::uint64_t in_flight_bytes_ = 0;
  std::size_t in_flight_packets_ = 0;        // those that count as in flight
  TimePoint probe_from_{};                   // the newest packet that requires an ACK, or the latest timeout
  Duration probe_ack_delay_ = kMaxAckDelay;  // how long that packet's receiver may delay its ACK
  std::optional<PacketNumber> largest_acked_;
  TimePoint largest_acked_sent_{};
  PacketAck last_ack_;  // the next ACK repeats parts of it, which are skipped

  std::optional<PacketNumber> last_lost_;
  std::optional<TimePoint> loss_at_;  // when the oldest packet in flight counts as lost by time
  unsigned timeouts_ = 0;

  DeliveryMeter delivery_;
};

}  // namespace longhaul::link::udp
