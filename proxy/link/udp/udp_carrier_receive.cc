// SPDX-License-Identifier: Apache-2.0
// Received packets: opening them, the address they come from, what they acknowledge, and the effects.
#include <openssl/rand.h>

#include "proxy/link/udp/udp_addresses.h"
#include "proxy/link/udp/udp_carrier.h"

namespace longhaul::link::udp {
namespace {

using namespace std::chrono_literals;

constexpr Duration kChallengeInterval = 200ms;
constexpr std::uint64_t kWorkPerDatagram = 1000, kWorkPerCarrierFrame = 200;

}  // namespace

Result<void> UdpCarrier::receive(MutableBytes datagram, const UdpAddress& from, TimePoint arrived,
                                 TimePoint now) {
  last_now_ = now;
  arrived_ = arrived;
  count_work(kWorkPerDatagram);
  auto opened = opener_.open(datagram, now);
  if (!opened) {
    ++counters_.packets_dropped;
    if (opened.error() == PacketError::keys_worn_out) wear_out(now);
    return {};
  }
  ++counters_.packets_received;
  counters_.bytes_received += datagram.size();
  note_address(from, opened->number, now);
  heard_from_ = from;
  end_received_ = std::max(end_received_, opened->number + 1);
  AckAsk ask = AckAsk::none;
  auto taken = take_frames(opened->payload, opened->number, false, ask, now);
  received_.on_packet(opened->number, ask, now, arrived);
  if (taken) taken = take_restored(ask, now);
  if (taken) return {};
  // Streams may have lost acknowledged bytes: the session must not continue.
  session_.abandon(now);
  return taken;
}

void UdpCarrier::note_address(const UdpAddress& from, PacketNumber number, TimePoint now) {
  if (same(from, config_.peer)) return;
  if (unknown(config_.peer)) {
    set_peer(from);
    mtu_ = PathMtu(family(from));
    if (state_ != State::up) probe(now);
    return;
  }
  // Only the newest packet indicates the peer's address; it may have been forwarded by an attacker, so the
  // address is validated.
  if (number < end_received_) return;
  if (challenged_at_ && now - *challenged_at_ < kChallengeInterval) return;
  // The same challenge again while it or its answer may be lost, or under way.
  if (candidate_ != from) {
    PathToken token;
    if (RAND_bytes(reinterpret_cast<unsigned char*>(token.data()), sizeof token) != 1) return;
    challenge_ = token;
    candidate_ = from;
  }
  challenged_at_ = now;
  challenge_due_ = true;
}

Result<void> UdpCarrier::take_frames(Bytes payload, PacketNumber number, bool restored, AckAsk& ask,
                                     TimePoint now) {
  Bytes sessions;  // consecutive frames of the session
  auto flush = [&]() -> Result<void> {
    if (sessions.empty()) return {};
    ask = std::max(ask, AckAsk::soon);
    return session_.receive(id_, std::exchange(sessions, {}), now);
  };
  for (Bytes rest = payload; !rest.empty();) {
    auto size = frame_size(rest);
    if (!size) return size.error();
    if (!*size || **size > rest.size()) return LinkError::malformed_frame;
    Bytes frame = rest.first(**size);
    rest = rest.subspan(frame.size());
    if (!is_carrier_frame(frame.front())) {
      sessions = Bytes(sessions.empty() ? frame.data() : sessions.data(), sessions.size() + frame.size());
      continue;
    }
    if (restored) return LinkError::malformed_frame;  // only the session's are protected
    if (auto flushed = flush(); !flushed) return flushed;
    ByteReader in(frame.subspan(1));
    Bytes body = *in.sized();
    auto taken =
        take_carrier_frame(static_cast<CarrierFrameType>(frame.front()), body, rest, number, ask, now);
    if (!taken) return taken;
  }
  return flush();
}

Result<void> UdpCarrier::take_carrier_frame(CarrierFrameType type, Bytes body, Bytes behind,
                                            PacketNumber number, AckAsk& ask, TimePoint now) {
  count_work(kWorkPerCarrierFrame);
  switch (type) {
    case CarrierFrameType::packet_ack: {
      auto ack = parse_packet_ack(body);
      if (!ack) return ack.error();
      if (auto taken = sent_.on_ack(*ack, arrived_, now, events_); !taken) return taken;
      sealer_.on_acknowledged(ack->largest());
      settle(now);
      return {};
    }
    case CarrierFrameType::probe:
      ask = AckAsk::at_once;
      // It works again, as far as the peer can tell.
      if (state_ == State::failed) probe(now);
      return {};
    case CarrierFrameType::path_challenge: {
      auto token = parse_path_token(body);
      if (!token) return token.error();
      ask = AckAsk::at_once;
      response_ = {*token, heard_from_};
      return {};
    }
    case CarrierFrameType::path_response: {
      auto token = parse_path_token(body);
      if (!token) return token.error();
      ask = std::max(ask, AckAsk::soon);
      if (!challenge_ || *token != *challenge_) return {};
      set_peer(*candidate_);
      candidate_.reset();
      challenge_.reset();
      challenge_due_ = false;
      mtu_.restart();
      return {};
    }
    case CarrierFrameType::symbol: {
      auto symbol = parse_symbol(body);
      if (!symbol) return symbol.error();
      fec_.on_symbol(*symbol, number, behind);
      return {};
    }
    case CarrierFrameType::repair: {
      auto repair = parse_repair(body);
      if (!repair) return repair.error();
      ask = std::max(ask, AckAsk::soon);
      fec_.on_repair(*repair);
      return {};
    }
    case CarrierFrameType::recovered: {
      auto numbers = parse_recovered(body);
      if (!numbers) return numbers.error();
      for (PacketNumber restored : *numbers)
        if (auto content = sent_.content_in_flight(restored)) contents_[*content].restored = true;
      return {};
    }
    case CarrierFrameType::padding:
      return {};
  }
  return {};  // of a later version
}

Result<void> UdpCarrier::take_restored(AckAsk& ask, TimePoint now) {
  while (auto restored = fec_.poll_restored(end_received_)) {
    // The number is restored from its low half: a wrong guess only costs a retransmission.
    if (recovered_.size() < recovered_.capacity()) recovered_.push_back(restored->number);
    if (auto taken = take_frames(restored->frames, restored->number, true, ask, now); !taken) return taken;
  }
  return {};
}

// Acts on the results of an ACK or a timer.
void UdpCarrier::settle(TimePoint now) {
  fec::LossReport report;
  for (const PacketFate& fate : events_.acked) {
    if (fate.kind == PacketKind::ack_only) {
      received_.on_ack_acknowledged(decode_packet_number(end_received_, fate.content));
      continue;
    }
    SentContent& content = contents_[fate.content];
    if (fate.kind == PacketKind::mtu_probe) {
      mtu_probe_bytes_ -= ip_bytes(content.datagram_bytes);
      mtu_.on_probe_acked(content.datagram_bytes, now);
    } else {
      mtu_.on_packet_acked(content.datagram_bytes);
      ++report.delivered;
    }
    if (content.ack) received_.on_ack_acknowledged(*content.ack);
    release(fate.content);
  }
  std::optional<PacketNumber> before;
  for (const PacketFate& fate : events_.lost) {
    if (fate.kind == PacketKind::data) {
      ++report.lost;
      bursts_.on_lost(fate.number);
      if (!before || fate.number != *before + 1) ++report.bursts;
      before = fate.number;
    }
    lose(fate, now);
  }
  bursts_.settle(sent_.settled_below());
  if (!events_.acked.empty()) {
    came_up(now);
    awaiting_since_ = sent_.packets_in_flight() ? std::optional(now) : std::nullopt;
    opener_.keep_previous_keys(3 * sent_.rtt().probe_timeout(SentPackets::kMaxAckDelay));
    received_.set_round_trip(sent_.rtt().smoothed());
  }
  events_.sample.full_packet_bytes = ip_bytes(mtu_.current());
  law_->on_sample(events_.sample);
  follow_law(now);
  if (const auto& delivery = events_.sample.delivery; delivery && delivery->interval > Duration{0}) {
    auto rate = static_cast<std::uint64_t>(static_cast<double>(delivery->delivered_bytes) /
                                           std::chrono::duration<double>(delivery->interval).count());
    if (!delivery->application_limited || rate > delivery_rate_)
      delivery_rate_ = delivery_rate_ ? (7 * delivery_rate_ + rate) / 8 : rate;
  }
  const RttEstimator& rtt = sent_.rtt();
  report.queue_stood = rtt.latest() - rtt.minimum() > std::max<Duration>(8ms, rtt.minimum() / 8);
  if (report.delivered || report.lost) fec_.on_report(report, rtt.smoothed(), now);
  if (events_.probes) {
    probes_owed_ = std::max(probes_owed_, events_.probes);
    // Instead of a mere probe, the newest data is sent again: usually that is what is missing.
    if (newest_data_ && state_ == State::up) {
      SentContent& content = contents_[*newest_data_];
      PacketContent ranges{.ranges = content.frames.ranges, .control = {}};
      session_.outgoing().on_lost(content.carrier, ranges, now);
    }
  }
}

void UdpCarrier::lose(const PacketFate& fate, TimePoint now) {
  if (fate.kind == PacketKind::ack_only) return;
  SentContent& content = contents_[fate.content];
  if (fate.kind == PacketKind::mtu_probe) {
    mtu_probe_bytes_ -= ip_bytes(content.datagram_bytes);
    mtu_.on_probe_lost(content.datagram_bytes, now);
  } else {
    mtu_.on_packet_lost(content.datagram_bytes);
    if (!content.restored) session_.outgoing().on_lost(content.carrier, content.frames, now);
  }
  release(fate.content);
}

void UdpCarrier::release(PacketContents::Handle handle) {
  if (newest_data_ == handle) newest_data_.reset();
  contents_.give_back(handle);
}

void UdpCarrier::on_too_large(std::size_t datagram_bytes, TimePoint now) {
  mtu_.on_too_large(datagram_bytes, now);
  follow_law(now);
}

}  // namespace longhaul::link::udp
