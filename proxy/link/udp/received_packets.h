// SPDX-License-Identifier: Apache-2.0
// Records which packet numbers were received, and determines when to acknowledge them (RFC 9000, sections
// 13.2 and 19.3). packet.h decrypts; replay_window.h rejects replays; carrier_frames.h has the wire form of
// an ACK.
#pragma once
#include <optional>
#include <vector>

#include "proxy/link/udp/packet_ack.h"

namespace longhaul::link::udp {

enum class AckAsk : std::uint8_t {
  none,     // the packet needs no acknowledgement for its own sake
  soon,     // within the usual delay
  at_once,  // PROBE, PATH_CHALLENGE, PATH_RESPONSE: the peer measures or waits
};

class ReceivedPackets {
 public:
  // Arrival stamps count from `start`, the creation of the carrier.
  explicit ReceivedPackets(TimePoint start) : start_(start) {}

  // For an authenticated packet that was not received before.
  void on_packet(PacketNumber number, AckAsk ask, TimePoint now, TimePoint arrived);
  void on_packet(PacketNumber number, AckAsk ask, TimePoint now) { on_packet(number, ask, now, now); }

  // When an ACK is due; in the past: at once. Returns nullopt if none is needed.
  std::optional<TimePoint> ack_due() const { return due_; }
  // The latest time for a due ACK, so that it can be sent with data: on a slow line this saves a packet.
  std::optional<TimePoint> ack_latest() const { return latest_; }
  // The ACK's content, to be sent by the caller: after this, none is due. Returns nullopt if no packet has
  // arrived yet.
  std::optional<PacketAck> make_ack(TimePoint now);

  // The ACK with this largest number has arrived: its ranges need not be repeated.
  void on_ack_acknowledged(PacketNumber largest);
  // The repeated part of each ACK is so large that the next packet should request an acknowledgement (a
  // PROBE). Otherwise a side that only receives would never forget any range.
  bool wants_acknowledgement() const { return ranges_.size() > kManyRanges; }

  // Bounds the delay of ACKs to a part of the round trip.
  void set_round_trip(Duration rtt) { rtt_ = rtt; }

  std::size_t range_count() const { return ranges_.size(); }

  static constexpr std::size_t kMaxRanges = 256;
  static constexpr std::size_t kManyRanges = 24;
  static constexpr unsigned kPacketsPerAck = 10;
  static constexpr unsigned kFirstPackets = 16;  // after a pause; each is acknowledged at once
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  static constexpr Duration kMaxDelay = std::chrono::milliseconds(25);
  static constexpr Duration kWaitForData = std::chrono::milliseconds(10);

 private:
  void insert(PacketNumber number);

  TimePoint start_;
  std::optional<Duration> rtt_;
  std::vector<NumberRange> ranges_;  // ascending: the newest packets are last
  PacketNumber largest_;
  TimePoint largest_at_{};
  bool any_ = false;
  std::uint64_t asked_since_pause_ = 0;
  TimePoint last_asked_at_{};
  unsigned asked_ = 0;  // packets that require an ACK, since the last one
  std::optional<TimePoint> due_, latest_;
};

}  // namespace longhaul::link::udp
