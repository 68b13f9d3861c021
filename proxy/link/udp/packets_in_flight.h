// SPDX-License-Identifier: Apache-2.0
// The packets that a carrier has sent and whose fate is unknown, with their contents: what an acknowledgement
// or a loss means for the session, for the packet size and for error correction.
#pragma once
#include <optional>

#include "fec/controller.h"
#include "proxy/link/packet_content.h"
#include "proxy/link/udp/burst_losses.h"
#include "proxy/link/udp/packet_contents.h"
#include "proxy/link/udp/path_mtu.h"
#include "proxy/link/udp/received_packets.h"
#include "proxy/link/udp/sent_packets.h"

namespace longhaul::link::udp {

class PacketsInFlight {
 public:
  using Handle = PacketContents::Handle;

  // `head_bytes`: UDP and IP headers of each datagram.
  PacketsInFlight(IpFamily family, std::uint32_t head_bytes, TimePoint now)
      : sent_(now), mtu_(family), head_bytes_(head_bytes) {}

  // ---- Sending.
  Handle take() { return contents_.take(); }
  SentContent& operator[](Handle handle) { return contents_[handle]; }
  void give_back(Handle handle) { contents_.give_back(handle); }
  // `handle` of an ack_only packet is the largest number in its ACK, and not a handle.
  void on_sent(PacketNumber number, PacketKind kind, Handle handle, std::size_t datagram_bytes,
               CarrierId carrier, OutgoingPacket packet, TimePoint now);
  // Probes for larger packets are few and do not count against the window.
  std::uint64_t bytes_against_window() const { return sent_.bytes_in_flight() - mtu_probe_bytes_; }
  // Records which packets were sent together.
  BurstLosses& bursts() { return bursts_; }
  const BurstLosses& bursts() const { return bursts_; }
  SentPackets& sent() { return sent_; }
  const SentPackets& sent() const { return sent_; }

  // ---- Fates. Each of these functions leaves its results in events(), until settle() acts on them.
  Result<void> on_ack(const PacketAck& ack, TimePoint arrived, TimePoint now) {
    return sent_.on_ack(ack, arrived, now, events_);
  }
  void on_timeout(TimePoint now) { sent_.on_timeout(now, events_); }
  SentEvents& events() { return events_; }
  // `expected`: approximately the highest number that the peer has sent.
  fec::LossReport settle(ReceivedPackets& received, PacketNumber expected, Outgoing& outgoing, TimePoint now);
  // The last settle()'s result for packets of the smallest size that a path must carry: whether one of that
  // size or larger was acknowledged, and how many of that size were lost.
  struct Large {
    bool acknowledged = false;
    unsigned lost = 0;
  };
  const Large& large() const { return large_; }
  // The peer has restored the packet by error correction.
  void on_restored(PacketNumber number) {
    if (const auto handle = sent_.content_in_flight(number)) contents_[*handle].restored = true;
  }
  // Sends the newest packet with bytes of streams again: it is the one most likely to be missing.
  void repeat_newest(Outgoing& outgoing, TimePoint now);
  // Copies bytes in these packets to a second carrier, for streams with little in flight.
  void copy_all(Outgoing& outgoing, TimePoint now);
  // The carrier has failed: all packets are lost.
  void abandon(Outgoing& outgoing, TimePoint now);

  // ---- Sizes.
  PathMtu& mtu() { return mtu_; }
  const PathMtu& mtu() const { return mtu_; }
  void use_path(IpFamily family, std::uint32_t head_bytes);
  void set_head_bytes(std::uint32_t head_bytes) { head_bytes_ = head_bytes; }
  std::uint32_t ip_bytes(std::size_t datagram_bytes) const {
    return static_cast<std::uint32_t>(datagram_bytes) + head_bytes_;
  }
  std::uint32_t full_packet() const { return ip_bytes(mtu_.current()); }

 private:
  void lose(const PacketFate& fate, Outgoing& outgoing, TimePoint now);
  void release(Handle handle);

  SentPackets sent_;
  SentEvents events_;  // stored to reuse their capacity
  BurstLosses bursts_;
  PacketContents contents_;
  PathMtu mtu_;
  std::uint32_t head_bytes_;
  std::uint64_t mtu_probe_bytes_ = 0;  // in flight, IP bytes
  std::optional<Handle> newest_data_;
  Large large_;
};

}  // namespace longhaul::link::udp
