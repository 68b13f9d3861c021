// SPDX-License-Identifier: Apache-2.0
// Which packet numbers were received, and when to acknowledge them (RFC 9000, sections 13.2 and 19.3). Leaves
// decoding and the refusal of replays to packet.h and replay_window.h, and the bytes of an ACK to
// carrier_frames.h.
#pragma once
#include <optional>
#include <vector>

#include "proxy/link/udp/packet_ack.h"

namespace longhaul::link::udp {

enum class AckAsk : std::uint8_t {
  none,     // nothing in the packet is acknowledged for its own sake
  soon,     // within the usual delay
  at_once,  // PROBE, PATH_CHALLENGE, PATH_RESPONSE: the peer measures or waits
};

class ReceivedPackets {
 public:
  // Arrival stamps count from `start`, the making of the carrier.
  explicit ReceivedPackets(TimePoint start) : start_(start) {}

  // An authenticated packet that was not seen before.
  void on_packet(PacketNumber number, AckAsk ask, TimePoint now, TimePoint arrived);
  void on_packet(PacketNumber number, AckAsk ask, TimePoint now) { on_packet(number, ask, now, now); }

  // When an ACK is due; in the past: at once. Nothing: none is needed.
  std::optional<TimePoint> ack_due() const { return due_; }
  // Until when one that is due may wait for data to go along with: on a slow line a packet less.
  std::optional<TimePoint> ack_latest() const { return latest_; }
  // What to say. Nothing, if no packet has come yet. The caller sends it: nothing is due any more.
  std::optional<PacketAck> make_ack(TimePoint now);

  // An ACK whose largest number was `largest` is known to have arrived: its contents need not be repeated.
  void on_ack_acknowledged(PacketNumber largest);
  // So much is told again in each ACK that the next packet should ask to be acknowledged itself (a PROBE).
  // Nothing else makes a side that only receives forget.
  bool wants_acknowledgement() const { return ranges_.size() > kManyRanges; }

  // Bounds the delay of ACKs to a part of it.
  void set_round_trip(Duration rtt) { rtt_ = rtt; }

  std::size_t range_count() const { return ranges_.size(); }

  static constexpr std::size_t kMaxRanges = 256;
  static constexpr std::size_t kManyRanges = 24;
  static constexpr unsigned kPacketsPerAck = 10;
  static constexpr unsigned kFirstPackets = 16;  // after a pause; each of them is acknowledged at once
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  static constexpr Duration kMaxDelay = std::chrono::milliseconds(25);
  static constexpr Duration kWaitForData = std::chrono::milliseconds(10);

 private:
  void insert(PacketNumber number);

  TimePoint start_;
  std::optional<Duration> rtt_;
  std::vector<NumberRange> ranges_;  // ascending; the newest packets are at its end
  PacketNumber largest_ = 0;
  TimePoint largest_at_{};
  bool any_ = false;
  std::uint64_t asked_since_pause_ = 0;
  TimePoint last_asked_at_{};
  unsigned asked_ = 0;  // since the last ACK
  std::optional<TimePoint> due_, latest_;
};

}  // namespace longhaul::link::udp
