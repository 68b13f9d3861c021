// SPDX-License-Identifier: Apache-2.0
// Makes packets: acknowledgements, probes, repairs, and the session's data, as far as rate and window permit.
#include "proxy/link/udp/udp_carrier.h"

#include <algorithm>

namespace longhaul::link::udp {
namespace {

using namespace std::chrono_literals;

constexpr Duration kMaxProbeInterval = 1s;
// An ACK larger than this goes by itself, not in a packet with data.
constexpr std::size_t kAckBesideData = 256;
// The free part of a packet that is needed to begin a frame of the session.
constexpr std::size_t kMinRoom = 48;

}  // namespace

bool UdpCarrier::transmit(DatagramBatch& batch, TimePoint now) {
  last_now_ = now;
  batch.clear();
  send_at_.reset();
  data_at_.reset();
  if (config_.peer.port() == 0 || keys_worn_out_) return false;
  if (send_path_frame(batch, now)) return true;
  batch.to = config_.peer;
  if (state_ == State::probing && probe_at_ && now >= *probe_at_) {
    probe_at_ = now + probe_interval_;
    probe_interval_ = std::min<Duration>(2 * probe_interval_, kMaxProbeInterval);
    return send_probe(PathMtu::kBase, PacketKind::data, batch, now);
  }
  if (state_ == State::up)
    if (auto size = mtu_.probe_due(now)) {
      mtu_.on_probe_sent(*size, now);
      return send_probe(*size, PacketKind::mtu_probe, batch, now);
    }
  // All of one size, except the last.
  std::size_t full = mtu_.current();
  const PacketNumber first = sent_.next_number();
  while (batch.segments() < DatagramBatch::kMaxSegments &&
         batch.bytes.size() + full <= DatagramBatch::kMaxBytes) {
    std::size_t start = batch.bytes.size();
    if (!build_packet(start ? batch.segment_bytes : full, batch.bytes, now)) break;
    std::size_t size = batch.bytes.size() - start;
    if (start == 0) batch.segment_bytes = size;
    // A short one ends the batch; so does a first one that no full packet could follow.
    if (size < batch.segment_bytes || batch.segment_bytes + kRepairRoom + 16 < full) break;
  }
  bursts_.on_burst(first, static_cast<unsigned>(batch.segments()));
  batch.one_by_one = bursts_.one_by_one();
  return !batch.bytes.empty();
}

bool UdpCarrier::goes_beside_data() const { return received_.range_count() <= kAckBesideData / 8; }

std::optional<TimePoint> UdpCarrier::ack_at() const {
  const auto due = received_.ack_due();
  if (!due || !data_at_ || !goes_beside_data()) return due;
  return *data_at_ > *due && *data_at_ <= *received_.ack_latest() ? data_at_ : due;
}

bool UdpCarrier::has_data(TimePoint now) const {
  return state_ == State::up && session_.outgoing().wants_to_transmit(id_, now);
}

bool UdpCarrier::may_send_data(TimePoint now) {
  if (state_ != State::up) return false;
  if (probes_owed_) return true;
  // Probes for larger packets are few and say nothing of what the line holds.
  if (sent_.bytes_in_flight() - mtu_probe_bytes_ + ip_bytes(mtu_.current()) > law_->window()) {
    pacer_.on_idle(now);
    return false;
  }
  sent_.on_missed(pacer_.missed(now));
  if (pacer_.allowance(now) > 0) return true;
  send_at_ = pacer_.next_send(now);
  return false;
}

// One packet of at most `limit` bytes behind the content of `out`. False: nothing to send, or not yet.
bool UdpCarrier::build_packet(std::size_t limit, Buffer& out, TimePoint now) {
  std::size_t start = out.size(), end = start + limit - kPacketTagBytes;
  std::optional<RepairFrame> repair;
  bool wants = has_data(now);
  bool may = (wants || fec_.next_timeout() || fec_.repairs_ready() || probes_owed_) && may_send_data(now);
  if (may) repair = fec_.next_repair(now);
  // Made when the path took larger packets.
  while (repair && kPacketOverhead + repair_frame_size(*repair) > mtu_.current())
    repair = fec_.next_repair(now);
  if (repair && kPacketOverhead + repair_frame_size(*repair) > limit) {
    // This batch has no room for it, the next one has.
    fec_.put_back(*repair);
    return false;
  }
  bool sends = may && (wants || repair || probes_owed_);
  data_at_ = wants && !may ? send_at_ : std::nullopt;
  const auto ack_time = ack_at();
  bool ack_due = ack_time && *ack_time <= now;
  if (!sends && !ack_due) {
    if (!wants && state_ == State::up) {
      fec_.on_quiet(now);
      pacer_.on_idle(now);
      sent_.on_idle();
    }
    return false;
  }
  PacketContents::Handle handle = contents_.take();
  SentContent& content = contents_[handle];
  out.resize(start + kPacketHeaderBytes);
  if (ack_due || received_.ack_due()) write_ack(content, sends && !ack_due, out, now);
  bool asks = false;
  if (sends && repair) {
    if (out.size() + repair_frame_size(*repair) > end) {
      // The ACK took its place: then only the ACK is sent.
      fec_.put_back(*repair);
    } else {
      write_repair(*repair, out);
      asks = true;
      ++counters_.repairs_sent;
      fec_.on_sent(std::nullopt, fec_mode_, now);
      if (!fec_.repairs_ready()) ask_at_end(out.size(), end, content, out, now);
    }
  } else if (sends) {
    asks = write_payload(end, start + mtu_.current() - kPacketTagBytes - kRepairRoom, content, out, now);
  }
  // Once in a round trip: the other side may have as much to report, and each request asks for an ACK.
  const bool wants_acknowledgement =
      received_.wants_acknowledgement() &&
      (!asked_acknowledgement_ || now - *asked_acknowledgement_ >= sent_.rtt().smoothed());
  if (!asks && wants_acknowledgement) asked_acknowledgement_ = now;
  if (!asks && (probes_owed_ || wants_acknowledgement || sealer_.update_waits())) {
    write_filler(CarrierFrameType::probe, 2, out);
    asks = content.asks_at_once = true;
  }
  if (out.size() == start + kPacketHeaderBytes) {
    out.resize(start);
    contents_.give_back(handle);
    return false;
  }
  if (asks && probes_owed_) --probes_owed_;
  if (!asks) {
    std::optional<PacketNumber> acked = content.ack;
    contents_.give_back(handle);
    return finish_packet(start, PacketKind::ack_only, static_cast<std::uint32_t>(acked.value_or(0)), out,
                         now);
  }
  return finish_packet(start, PacketKind::data, handle, out, now);
}

// Reports received packets, and those restored by error correction.
void UdpCarrier::write_ack(SentContent& content, bool only_if_small, Buffer& out, TimePoint now) {
  if (only_if_small && !goes_beside_data()) return;
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

// The session's frames, as a symbol if they are protected. False: no frame fitted.
bool UdpCarrier::write_payload(std::size_t end, std::size_t protected_end, SentContent& content, Buffer& out,
                               TimePoint now) {
  if (end < out.size() + kMinRoom || !has_data(now)) return false;
  // Control frames are as urgent as interactive streams, and what is first in the packet decides for all of
  // it.
  auto next = session_.outgoing().next_stream();
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
  session_.outgoing().fill(id_, end - frames,
                           symbol && interactive ? Outgoing::Streams::interactive : Outgoing::Streams::all,
                           out, content.frames, now);
  if (out.size() == frames) {
    out.resize(before);
    return false;
  }
  // In front of SYMBOL: the part behind it is protected, which carrier frames are not.
  newest_has_bytes_ = !content.frames.ranges.empty();
  frames += ask_at_end(before, packet_end, content, out, now);
  if (symbol) fec_.add_symbol(symbol->of, sealer_.next_number(), Bytes(out).subspan(frames));
  fec_.on_sent(symbol ? std::optional(symbol->of) : std::nullopt, mode, now);
  return true;
}

// If the last packet for a while is lost no later packet shows it, only a timer. The timer can be short if
// the receiver answers that packet at once: a PROBE is inserted at `at`. Returns how many bytes it takes.
std::size_t UdpCarrier::ask_at_end(std::size_t at, std::size_t end, SentContent& content, Buffer& out,
                                   TimePoint now) {
  constexpr std::size_t kProbeBytes = 2;
  if (out.size() + kProbeBytes > end || (has_data(now) && !probes_owed_) || fec_.erasure_rate() == 0)
    return 0;
  // A pure receiver repeats its messages anyway, and answers to them would only delay the
  // data.
  if (!newest_has_bytes_) return 0;
  // If a source is just slower than the line every packet is the last one: hardly more ACKs than usual.
  const Duration often = sent_.rtt().smoothed() / 8;
  if (!probes_owed_ && asked_at_end_ && now - *asked_at_end_ < often) return 0;
  asked_at_end_ = now;
  write_filler(CarrierFrameType::probe, kProbeBytes, out);
  std::rotate(out.begin() + static_cast<std::ptrdiff_t>(at), out.end() - kProbeBytes, out.end());
  content.asks_at_once = true;
  return kProbeBytes;
}

bool UdpCarrier::send_probe(std::size_t datagram_bytes, PacketKind kind, DatagramBatch& batch,
                            TimePoint now) {
  PacketContents::Handle handle = contents_.take();
  batch.bytes.resize(kPacketHeaderBytes);
  write_filler(CarrierFrameType::probe, datagram_bytes - kPacketOverhead, batch.bytes);
  contents_[handle].asks_at_once = true;
  batch.segment_bytes = datagram_bytes;
  return finish_packet(0, kind, handle, batch.bytes, now);
}

bool UdpCarrier::send_path_frame(DatagramBatch& batch, TimePoint now) {
  if (!challenge_due_ && !response_) return false;
  batch.bytes.resize(kPacketHeaderBytes);
  if (response_) {
    batch.to = response_->to;
    write_path_token(CarrierFrameType::path_response, response_->token, batch.bytes);
    response_.reset();
  } else {
    batch.to = *candidate_;
    write_path_token(CarrierFrameType::path_challenge, *challenge_, batch.bytes);
    challenge_due_ = false;
  }
  batch.segment_bytes = batch.bytes.size() + kPacketTagBytes;
  return finish_packet(0, PacketKind::data, contents_.take(), batch.bytes, now);
}

// Seals what stands in `out` from `start` on and counts it as sent.
bool UdpCarrier::finish_packet(std::size_t start, PacketKind kind, std::uint32_t handle, Buffer& out,
                               TimePoint now) {
  out.resize(out.size() + kPacketTagBytes);
  std::size_t size = out.size() - start;
  auto number = sealer_.seal(MutableBytes(out).subspan(start));
  if (!number) {
    // What would have been in it goes again with all that was in flight.
    out.resize(start);
    if (kind != PacketKind::ack_only) contents_.give_back(handle);
    wear_out(now);
    return false;
  }
  bool asks = kind != PacketKind::ack_only, asks_at_once = false;
  if (asks) {
    SentContent& content = contents_[handle];
    asks_at_once = content.asks_at_once;
    content.datagram_bytes = static_cast<std::uint32_t>(size);
    content.carrier = id_;
    if (!content.frames.ranges.empty()) newest_data_ = handle;
    if (!awaiting_since_) awaiting_since_ = now;
    if (kind == PacketKind::mtu_probe) mtu_probe_bytes_ += ip_bytes(size);
    if (kind == PacketKind::data) {
      const std::uint16_t epoch = law_->epoch();
      law_->on_send(now, ip_bytes(size), sent_.bytes_in_flight());
      pacer_.on_sent(now, ip_bytes(size));
      // The next packet is sent at another rate. (Setting the same one again would reset what a late timer
      // may make up for.)
      if (law_->epoch() != epoch) pacer_.set_rate(now, law_->pacing_rate());
    }
  }
  sent_.on_sent(*number, now,
                {.bytes = ip_bytes(size),
                 .content = handle,
                 .kind = kind,
                 .epoch = law_->epoch(),
                 .application_limited = !has_data(now),
                 .asks_at_once = asks_at_once});
  ++counters_.packets_sent;
  counters_.bytes_sent += size;
  return true;
}

}  // namespace longhaul::link::udp
