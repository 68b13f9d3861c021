// SPDX-License-Identifier: Apache-2.0
// Which packets are in flight, acknowledged or lost, and how fast the line delivers (RFC 9002; delivery rate
// as in BBR, by the receiver's arrival stamps). Leaves the packets' content to its owner, who gives each
// packet a handle, and conclusions about the rate to a RateLaw.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "codecs/result.h"
#include "proxy/link/udp/packet_ack.h"
#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/reordering.h"
#include "proxy/link/udp/rtt_estimator.h"

namespace longhaul::link::udp {

enum class PacketKind : std::uint8_t {
  data,       // to be acknowledged; counts as in flight, its loss counts
  mtu_probe,  // the same, but its loss says only that it was too large (RFC 9000, section 14.4)
  // Not acknowledged for its own sake, never declared lost, forgotten after a while: its `content` must not
  // need returning (such as the number in its ACK).
  ack_only,
};

struct OutgoingPacket {
  std::uint32_t bytes = 0;    // IP bytes
  std::uint32_t content = 0;  // the owner's handle, given back when the packet's fate is known
  PacketKind kind = PacketKind::data;
  std::uint16_t epoch = 0;           // RateLaw::epoch()
  bool application_limited = false;  // the owner had no more than this to send
  bool asks_at_once = false;         // its receiver acknowledges it without the usual delay
};

struct PacketFate {
  PacketNumber number;
  std::uint32_t content = 0;
  PacketKind kind = PacketKind::data;
};

// The results of an ACK or a timer. Reused by the caller, so that no ACK causes an allocation.
struct SentEvents {
  // Each handle (except those of ack_only packets) is returned once, in one of these two.
  std::vector<PacketFate> acked;
  std::vector<PacketFate> lost;
  // Arrived although declared lost. The handle was returned with the loss: valid only if its owner kept it.
  std::vector<PacketFate> spurious;
  std::vector<EpochTally> epochs;  // what sample.epochs shows
  RateSample sample;
  unsigned probes = 0;  // packets asking for an acknowledgement to be sent now, beyond the window
};

// Errors of a peer that has the right key and breaks the protocol.
enum class AckError {
  never_sent = 1,  // a number that was not used yet
  malformed,       // ranges not descending, or empty
};
const boost::system::error_category& ack_category();
inline boost::system::error_code make_error_code(AckError error) {
  return {static_cast<int>(error), ack_category()};
}

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

  // The number that the next packet must have; numbers have no gaps.
  PacketNumber next_number() const { return next_; }
  void on_sent(PacketNumber number, TimePoint now, const OutgoingPacket& packet);
  // The owner has nothing to send. A pacer or a window that delays packets is no pause.
  void on_idle() { limited_last_ = true; }
  // The owner was this much later than the pacer's time. For measurements over a round trip, a little does
  // not matter.
  void on_missed(Duration time) {
    if (time > std::max<Duration>(kMinTrain / 2, rtt_.smoothed() / 4)) on_idle();
  }

  // Overwrites `events`. An error ends the carrier; nothing was changed then. `arrived` is when the ACK
  // reached this host, which may have been busy until `now`.
  Result<void> on_ack(const PacketAck& ack, TimePoint arrived, TimePoint now, SentEvents& events);
  Result<void> on_ack(const PacketAck& ack, TimePoint now, SentEvents& events) {
    return on_ack(ack, now, now, events);
  }

  // Losses by time, and probes. No result: nothing is in flight.
  std::optional<TimePoint> next_timeout() const;
  // Overwrites `events`; a call too early is harmless. The next timeout lies after `now` then.
  void on_timeout(TimePoint now, SentEvents& events);

  // The handle of a packet whose fate is open.
  std::optional<std::uint32_t> content_in_flight(PacketNumber number) const {
    if (number < base_ || number >= next_) return std::nullopt;
    const Entry& found = entries_[number - base_];
    if (found.state != State::in_flight || found.kind == PacketKind::ack_only) return std::nullopt;
    return found.content;
  }

  // The carrier ends: everything whose fate is unknown is lost.
  void abandon(SentEvents& events);

  // When the newest packet with a reported arrival was sent.
  TimePoint newest_acknowledged() const { return largest_acked_sent_; }
  // The fate of all packets below is known, as far as losses are concerned.
  PacketNumber settled_below() const { return std::max(scan_, base_); }
  std::uint64_t bytes_in_flight() const { return in_flight_bytes_; }
  std::size_t packets_in_flight() const { return in_flight_packets_; }
  const RttEstimator& rtt() const { return rtt_; }
  const SentCounters& counters() const { return counters_; }
  unsigned timeouts_in_a_row() const { return timeouts_; }  // without an ACK of anything new

  static constexpr unsigned kPacketThreshold = 3;
  static constexpr Duration kMaxAckDelay = std::chrono::milliseconds(25);
  static constexpr Duration kPromptAckDelay = std::chrono::milliseconds(2);  // at once, on a busy host
  static constexpr Duration kMaxProbeInterval = std::chrono::seconds(3);
  // Shorter trains say more about batching in the two hosts than about the line.
  static constexpr Duration kMinTrain = std::chrono::milliseconds(20);

 private:
  enum class State : std::uint8_t { in_flight, acked, lost };
  struct Entry {
    TimePoint sent;
    std::uint64_t dispatched;  // bytes ever sent, this packet included
    std::uint64_t mark;        // number of the delivery mark that was the newest when this packet was sent
    std::uint32_t limited;     // packets ever sent while there was too little to send, this one included
    std::uint32_t bytes;
    std::uint32_t content;
    std::uint16_t epoch;
    PacketKind kind;
    State state;
  };
  // The state of delivery at an ACK.
  struct Mark {
    bool known = false;           // at a beginning: by the first ACK of what was sent since, and not before
    bool begins = false;          // a pause was before it, or a time with too little to send
    std::uint32_t limited = 0;    // of the largest packet then acknowledged, as all below
    std::uint64_t delivered = 0;  // bytes ever delivered
    std::uint64_t dispatched = 0;
    TimePoint sent{};
    Duration arrival{};
  };

  Entry& entry(PacketNumber number) { return entries_[number - base_]; }
  Result<void> check(const PacketAck& ack) const;
  void acknowledge_new(const PacketAck& ack, TimePoint now, SentEvents& events);
  void acknowledge(PacketNumber first, PacketNumber last, TimePoint overtaken, TimePoint now,
                   SentEvents& events);
  void detect_losses(TimePoint now, SentEvents& events);
  void lose(PacketNumber number, SentEvents& events);
  void take_delivery_rate(const Entry& largest, Duration arrival, RateSample& sample);
  void begin(TimePoint now, SentEvents& events) const;
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
  TimePoint probe_from_{};                   // the newest packet that asks for an ACK, or the latest timeout
  Duration probe_ack_delay_ = kMaxAckDelay;  // how long that packet's receiver may wait
  std::optional<PacketNumber> largest_acked_;
  TimePoint largest_acked_sent_{};
  PacketAck last_ack_;  // the part repeated by the next one is not processed again

  std::optional<PacketNumber> last_lost_;
  std::optional<TimePoint> loss_at_;  // when the oldest packet in flight is lost by time
  unsigned timeouts_ = 0;

  std::uint64_t dispatched_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint32_t limited_ = 0;
  bool limited_last_ = true;  // there was too little to send when, or since, the newest packet went
  std::deque<Mark> marks_;
  std::uint64_t first_mark_ = 0;        // number of marks_.front()
  std::uint64_t newest_beginning_ = 0;  // the newest mark that begins
  std::uint64_t round_ = 0;
  std::uint64_t round_mark_ = 0;  // a packet sent at or after this mark ends the round
};

}  // namespace longhaul::link::udp

template <>
struct boost::system::is_error_code_enum<longhaul::link::udp::AckError> : std::true_type {};
