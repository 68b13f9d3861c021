// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/batch_maker.h"

namespace longhaul::link::udp {
namespace {

constexpr std::size_t kSmallProbeBytes = kPacketOverhead + 2;  // UDP payload

}  // namespace

void BatchMaker::make(DatagramBatch& batch, TimePoint now) {
  batch.to = address_.current();
  PathMtu& mtu = flight_.mtu();
  if (address_.frame_due()) {
    batch.bytes.resize(kPacketHeaderBytes);
    batch.to = address_.write_frame(batch.bytes);
    maker_.make_from(batch.bytes, now);
    batch.segment_bytes = batch.bytes.size();
  } else if (health_.probe_is_due(now)) {
    make_path_probe(batch, now);
  } else if (const auto size = health_.state() == PathHealth::State::up ? mtu.probe_due(now) : std::nullopt) {
    mtu.on_probe_sent(*size, now);
    maker_.make_probe(*size, PacketKind::mtu_probe, batch.bytes, now);
    batch.segment_bytes = batch.bytes.size();
  } else {
    make_packets(batch, now);
  }
}

// A small one first: the difference of their delays shows the rate of a slow line (packet_time.h). It is sent
// as an MTU probe, because its acknowledgement does not show that the path carries large packets.
void BatchMaker::make_path_probe(DatagramBatch& batch, TimePoint now) {
  small_probe_sent_ = !small_probe_sent_;
  if (small_probe_sent_) {
    maker_.make_probe(kSmallProbeBytes, PacketKind::mtu_probe, batch.bytes, now);
  } else {
    health_.on_probe_sent(now);
    maker_.make_probe(PathMtu::kBase, PacketKind::data, batch.bytes, now);
  }
  batch.segment_bytes = batch.bytes.size();
}

// All of one size, except the last.
void BatchMaker::make_packets(DatagramBatch& batch, TimePoint now) {
  const std::size_t full = flight_.mtu().current();
  const PacketNumber first = flight_.sent().next_number();
  while (batch.segments() < DatagramBatch::kMaxSegments &&
         batch.bytes.size() + full <= DatagramBatch::kMaxBytes) {
    const std::size_t start = batch.bytes.size();
    if (!maker_.make(start ? batch.segment_bytes : full, batch.bytes, now)) break;
    const std::size_t made = batch.bytes.size() - start;
    if (start == 0) batch.segment_bytes = made;
    // A short packet ends the batch; so does a first one after which no full packet could follow.
    if (made < batch.segment_bytes || batch.segment_bytes + kRepairRoom + 16 < full) break;
  }
  flight_.bursts().on_burst(first, static_cast<unsigned>(batch.segments()));
  batch.one_by_one = flight_.bursts().one_by_one();
}

}  // namespace longhaul::link::udp
