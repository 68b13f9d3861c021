// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packets_in_flight.h"

#include <algorithm>

#include "proxy/link/udp/carrier_frames.h"
#include "proxy/link/udp/packet.h"

namespace longhaul::link::udp {

using namespace std::chrono_literals;

void PacketsInFlight::on_sent(PacketNumber number, PacketKind kind, Handle handle, std::size_t datagram_bytes,
                              CarrierId carrier, OutgoingPacket packet, TimePoint now) {
  packet.bytes = ip_bytes(datagram_bytes);
  packet.content = handle;
  packet.kind = kind;
  if (kind != PacketKind::ack_only) {
    SentContent& content = contents_[handle];
    packet.asks_at_once = content.asks_at_once;
    content.datagram_bytes = static_cast<std::uint32_t>(datagram_bytes);
    content.carrier = carrier;
    if (!content.frames.ranges.empty()) newest_data_ = handle;
    if (kind == PacketKind::mtu_probe) mtu_probe_bytes_ += packet.bytes;
  }
  sent_.on_sent(number, now, packet);
}

// A full packet of the smallest size, which may have left room for a repair.
constexpr std::size_t kLarge = PathMtu::kBase - kRepairRoom;

fec::LossReport PacketsInFlight::settle(ReceivedPackets& received, PacketNumber expected, Outgoing& outgoing,
                                        TimePoint now) {
  fec::LossReport report;
  large_ = {};
  // They are older than the newest that is acknowledged.
  for (const PacketFate& fate : events_.lost)
    if (fate.kind == PacketKind::data) mtu_.on_packet_lost(contents_[fate.content].datagram_bytes);
  std::size_t largest = 0;
  for (const PacketFate& fate : events_.acked) {
    if (fate.kind == PacketKind::ack_only) {
      received.on_ack_acknowledged(decode_packet_number(expected, fate.content));
      continue;
    }
    const SentContent& content = contents_[fate.content];
    if (fate.kind == PacketKind::mtu_probe) {
      mtu_probe_bytes_ -= ip_bytes(content.datagram_bytes);
      mtu_.on_probe_acked(content.datagram_bytes, now);
    } else {
      largest = std::max<std::size_t>(largest, content.datagram_bytes);
      large_.acknowledged |= content.datagram_bytes >= kLarge;
      ++report.delivered;
    }
    if (content.ack) received.on_ack_acknowledged(*content.ack);
    release(fate.content);
  }
  if (largest > 0) mtu_.on_packet_acked(largest);
  std::optional<PacketNumber> before;
  for (const PacketFate& fate : events_.lost) {
    if (fate.kind == PacketKind::data) {
      ++report.lost;
      const std::size_t size = contents_[fate.content].datagram_bytes;
      // The loss of larger packets reduces their size first (PathMtu).
      large_.lost += size >= kLarge && size <= PathMtu::kBase;
      bursts_.on_lost(fate.number);
      if (!before || fate.number != *before + 1) ++report.bursts;
      before = fate.number;
    }
    lose(fate, outgoing, now);
  }
  bursts_.settle(sent_.settled_below());
  const RttEstimator& rtt = sent_.rtt();
  report.queue_stood = rtt.latest() - rtt.minimum() > std::max<Duration>(8ms, rtt.minimum() / 8);
  events_.sample.full_packet_bytes = full_packet();
  return report;
}

void PacketsInFlight::lose(const PacketFate& fate, Outgoing& outgoing, TimePoint now) {
  if (fate.kind == PacketKind::ack_only) return;
  const SentContent& content = contents_[fate.content];
  if (fate.kind == PacketKind::mtu_probe) {
    mtu_probe_bytes_ -= ip_bytes(content.datagram_bytes);
    mtu_.on_probe_lost(content.datagram_bytes, now);
  } else if (!content.restored) {
    outgoing.on_lost(content.carrier, content.frames, now);
  }
  release(fate.content);
}

void PacketsInFlight::release(Handle handle) {
  if (newest_data_ == handle) newest_data_.reset();
  contents_.give_back(handle);
}

void PacketsInFlight::repeat_newest(Outgoing& outgoing, TimePoint now) {
  if (!newest_data_) return;
  const SentContent& content = contents_[*newest_data_];
  const PacketContent ranges{.ranges = content.frames.ranges, .control = {}};
  outgoing.on_lost(content.carrier, ranges, now);
}

void PacketsInFlight::copy_all(Outgoing& outgoing, TimePoint now) {
  sent_.visit_in_flight([&](Handle handle) {
    if (!contents_[handle].restored) outgoing.copy(contents_[handle].frames, now);
  });
}

void PacketsInFlight::abandon(Outgoing& outgoing, TimePoint now) {
  newest_data_.reset();
  sent_.abandon(events_);
  for (const PacketFate& fate : events_.lost) lose(fate, outgoing, now);
}

void PacketsInFlight::use_path(IpFamily family, std::uint32_t head_bytes) {
  mtu_ = PathMtu(family);
  head_bytes_ = head_bytes;
}

}  // namespace longhaul::link::udp
