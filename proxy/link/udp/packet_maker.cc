// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_maker.h"

#include <algorithm>

namespace longhaul::link::udp {
namespace {

// A larger ACK is sent separately, not in a packet with data.
constexpr std::size_t kAckBesideData = 256;
// At least that much of a packet must be free to begin a frame of the session.
constexpr std::size_t kMinRoom = 48;
// Limit of the bytes that repairs may use later: a few messages that are sent together need their repairs
// soon.
constexpr std::size_t kMostRepairRoom = 16 * 1500;
// Size of a PROBE frame without padding.
constexpr std::size_t kProbeBytes = 2;

}  // namespace

void PacketMaker::on_failed() {
  begin_batch();
  probes_owed_ = 0;
}

bool PacketMaker::ack_fits_beside_data() const { return received_.range_count() <= kAckBesideData / 8; }

std::optional<TimePoint> PacketMaker::ack_at() const {
  const auto due = received_.ack_due();
  if (!due || !data_at_ || !ack_fits_beside_data()) return due;
  return *data_at_ > *due && *data_at_ <= *received_.ack_latest() ? data_at_ : due;
}

bool PacketMaker::may_send_data(TimePoint now) {
  if (!is_up()) return false;
  if (probes_owed_) return true;
  Pacer& pacer = rate_.pacer();
  if (!rate_.window_admits(flight_.bytes_against_window() + flight_.full_packet())) {
    pacer.on_idle(now);
    return false;
  }
  flight_.sent().on_missed(pacer.missed(now));
  if (pacer.allowance(now) > 0) return true;
  send_at_ = pacer.next_send(now);
  return false;
}

// While data waits, repairs take no more than half of what is sent, unless the user has set their share.
// Where much is lost each message has several: on a slow line they would leave no room for the messages.
std::optional<RepairFrame> PacketMaker::next_repair(bool data_waits, TimePoint now) {
  std::optional<RepairFrame> repair = fec_.next_repair(now);
  // The repair was made when the path carried larger packets.
  while (repair && kPacketOverhead + repair_frame_size(*repair) > flight_.mtu().current())
    repair = fec_.next_repair(now);
  if (!repair || !data_waits || repair->of == fec::Class::fixed) return repair;
  if (repair_frame_size(*repair) <= repair_room_) return repair;
  fec_.put_back(*repair);
  return std::nullopt;
}

bool PacketMaker::make(std::size_t limit, Buffer& out, TimePoint now) {
  std::size_t start = out.size(), end = start + limit - kPacketTagBytes;
  std::optional<RepairFrame> repair;
  bool wants = has_data(now);
  bool may = (wants || fec_.next_timeout() || fec_.repairs_ready() || probes_owed_) && may_send_data(now);
  if (may) repair = next_repair(wants, now);
  if (repair && kPacketOverhead + repair_frame_size(*repair) > limit) {
    // The repair does not fit into this batch, but into the next one.
    fec_.put_back(*repair);
    return false;
  }
  bool sends = may && (wants || repair || probes_owed_);
  if (sends && !repair && probes_owed_ == 1) end = std::min(end, start + PathMtu::kBase - kPacketTagBytes);
  data_at_ = wants && !may ? send_at_ : std::nullopt;
  const auto ack_time = ack_at();
  bool ack_due = ack_time && *ack_time <= now;
  if (!sends && !ack_due) {
    if (!wants && is_up()) {
      fec_.on_quiet(now);
      rate_.pacer().on_idle(now);
      flight_.sent().on_idle();
    }
    return false;
  }
  PacketsInFlight::Handle handle = flight_.take();
  SentContent& content = flight_[handle];
  out.resize(start + kPacketHeaderBytes);
  if (ack_due || received_.ack_due()) write_ack(content, sends && !ack_due, out, now);
  bool asks = false;
  if (sends && repair) {
    if (out.size() + repair_frame_size(*repair) > end) {
      // The ACK left too little room: then only the ACK is sent.
      fec_.put_back(*repair);
    } else {
      write_repair(*repair, out);
      asks = true;
      ++repairs_sent_;
      repair_room_ -= std::min(repair_room_, static_cast<std::uint32_t>(repair_frame_size(*repair)));
      fec_.on_sent(std::nullopt, fec_mode_, now);
      if (!fec_.repairs_ready()) ask_at_end(out.size(), end, content, out, now);
    }
  } else if (sends) {
    asks = write_payload(end, start + flight_.mtu().current() - kPacketTagBytes - kRepairRoom, content, out,
                         now);
  }
  // Once in a round trip: the other side may have as much to report, and each probe requests an ACK.
  const bool wants_acknowledgement =
      received_.wants_acknowledgement() &&
      (!asked_acknowledgement_ || now - *asked_acknowledgement_ >= flight_.sent().rtt().smoothed());
  if (!asks && wants_acknowledgement) asked_acknowledgement_ = now;
  if (!asks && (probes_owed_ || wants_acknowledgement || sealer_.update_waits())) {
    write_filler(CarrierFrameType::probe, kProbeBytes, out);
    asks = content.asks_at_once = true;
  }
  if (out.size() == start + kPacketHeaderBytes) {
    out.resize(start);
    flight_.give_back(handle);
    return false;
  }
  if (asks && probes_owed_) --probes_owed_;
  if (!asks) {
    std::optional<PacketNumber> acked = content.ack;
    flight_.give_back(handle);
    return finish(start, PacketKind::ack_only, low_bits(acked.value_or(PacketNumber{})), out, now);
  }
  return finish(start, PacketKind::data, handle, out, now);
}

// Reports what was received, and what error correction restored.
void PacketMaker::write_ack(SentContent& content, bool only_if_small, Buffer& out, TimePoint now) {
  if (only_if_small && !ack_fits_beside_data()) return;
  auto ack = received_.make_ack(now);
  if (!ack) return;
  write_packet_ack(*ack, out);
  content.ack = ack->largest();
  if (recovered_.empty()) return;
  std::sort(recovered_.begin(), recovered_.end(), std::greater<>());
  recovered_.erase(std::unique(recovered_.begin(), recovered_.end()), recovered_.end());
  write_recovered(recovered_, out);
  recovered_.clear();
}

// Writes the session's frames, as a symbol if they are protected. Returns false if nothing fits.
bool PacketMaker::write_payload(std::size_t end, std::size_t protected_end, SentContent& content, Buffer& out,
                                TimePoint now) {
  if (end < out.size() + kMinRoom || !has_data(now)) return false;
  // Control frames are as urgent as interactive streams, and the first frame in the packet determines the
  // class of all of it.
  auto next = outgoing_.next_stream(carrier_);
  bool interactive = !next || next->stream_class == StreamClass::interactive;
  fec::Mode mode = next ? mode_of(next->features.fec) : fec_mode_;
  auto symbol = fec_.next_symbol(interactive, mode);
  const std::size_t before = out.size(), packet_end = end;
  if (symbol) {
    write_symbol(*symbol, out);
    end = std::min(end, protected_end);
    if (end < out.size() + kMinRoom) {
      out.resize(before);
      return false;
    }
  }
  std::size_t frames = out.size();
  outgoing_.fill(carrier_, end - frames,
                 symbol && interactive ? Outgoing::Streams::interactive : Outgoing::Streams::all, out,
                 content.frames, now);
  if (out.size() == frames) {
    out.resize(before);
    return false;
  }
  repair_room_ = static_cast<std::uint32_t>(std::min(repair_room_ + out.size() - before, kMostRepairRoom));
  // Before SYMBOL: what follows it is protected, which carrier frames are not.
  newest_has_bytes_ = !content.frames.ranges.empty();
  frames += ask_at_end(before, packet_end, content, out, now);
  if (symbol) fec_.add_symbol(symbol->of, sealer_.next_number(), Bytes(out).subspan(frames));
  fec_.on_sent(symbol ? std::optional(symbol->of) : std::nullopt, mode, now);
  return true;
}

// If the last packet for a while is lost, no later packet reveals it, and only a timer helps. It can be short
// if the receiver acknowledges that packet at once: a PROBE is inserted at `at`. Returns how many bytes it
// takes.
std::size_t PacketMaker::ask_at_end(std::size_t at, std::size_t end, SentContent& content, Buffer& out,
                                    TimePoint now) {
  if (out.size() + kProbeBytes > end || (has_data(now) && !probes_owed_) || fec_.erasure_rate() == 0)
    return 0;
  // A pure receiver repeats its messages anyway, and their acknowledgements would only delay the data.
  if (!newest_has_bytes_) return 0;
  // If a source is just slower than the line, every packet is the last one: then probes cause hardly more
  // ACKs than there are anyway.
  const Duration often = flight_.sent().rtt().smoothed() / 8;
  if (!probes_owed_ && asked_at_end_ && now - *asked_at_end_ < often) return 0;
  asked_at_end_ = now;
  write_filler(CarrierFrameType::probe, kProbeBytes, out);
  std::rotate(out.begin() + static_cast<std::ptrdiff_t>(at), out.end() - kProbeBytes, out.end());
  content.asks_at_once = true;
  return kProbeBytes;
}

bool PacketMaker::make_probe(std::size_t datagram_bytes, PacketKind kind, Buffer& out, TimePoint now) {
  const PacketsInFlight::Handle handle = flight_.take();
  out.resize(kPacketHeaderBytes);
  write_filler(CarrierFrameType::probe, datagram_bytes - kPacketOverhead, out);
  flight_[handle].asks_at_once = true;
  return finish(0, kind, handle, out, now);
}

bool PacketMaker::make_from(Buffer& out, TimePoint now) {
  return finish(0, PacketKind::data, flight_.take(), out, now);
}

// Encrypts the bytes in `out` from `start` on and counts them as sent.
bool PacketMaker::finish(std::size_t start, PacketKind kind, std::uint32_t handle, Buffer& out,
                         TimePoint now) {
  out.resize(out.size() + kPacketTagBytes);
  const std::size_t size = out.size() - start;
  const auto number = sealer_.seal(MutableBytes(out).subspan(start));
  if (!number) {
    // The carrier fails, and the content is sent again with everything else in flight.
    out.resize(start);
    if (kind != PacketKind::ack_only) flight_.give_back(handle);
    keys_worn_out_ = true;
    return false;
  }
  if (kind != PacketKind::ack_only) health_.on_sent(now);
  if (kind == PacketKind::data) rate_.on_sent(now, flight_.ip_bytes(size), flight_.sent().bytes_in_flight());
  flight_.on_sent(*number, kind, handle, size, carrier_,
                  {.epoch = rate_.epoch(), .application_limited = !has_data(now)}, now);
  ++packets_sent_;
  bytes_sent_ += size;
  return true;
}

}  // namespace longhaul::link::udp
