// SPDX-License-Identifier: Apache-2.0
// What arrives: packets that open, the address they come from, what they acknowledge, and what follows from
// that.
#include "proxy/link/udp/udp_carrier.h"

namespace longhaul::link::udp {
namespace {

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
  came_from_ = from;
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
  using Age = PeerAddress::Age;
  if (!address_.note(from, number < end_received_ ? Age::older : Age::newest, now)) return;
  flight_.use_path(family(from), head_bytes(from));
  if (state() != State::up) probe(now);
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
      if (auto taken = flight_.on_ack(*ack, arrived_, now); !taken) return taken;
      sealer_.on_acknowledged(ack->largest());
      settle(now);
      return {};
    }
    case CarrierFrameType::probe:
      ask = AckAsk::at_once;
      // It works again, as far as the peer can tell.
      if (state() == State::failed) probe(now);
      return {};
    case CarrierFrameType::path_challenge: {
      auto token = parse_path_token(body);
      if (!token) return token.error();
      ask = AckAsk::at_once;
      address_.on_challenge(*token, came_from_);
      return {};
    }
    case CarrierFrameType::path_response: {
      auto token = parse_path_token(body);
      if (!token) return token.error();
      ask = std::max(ask, AckAsk::soon);
      if (!address_.on_response(*token)) return {};
      flight_.set_head_bytes(head_bytes(peer()));
      flight_.mtu().restart();
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
      for (PacketNumber restored : *numbers) flight_.on_restored(restored);
      return {};
    }
    case CarrierFrameType::padding:
      return {};
  }
  return {};  // of a later version
}

Result<void> UdpCarrier::take_restored(AckAsk& ask, TimePoint now) {
  while (auto restored = fec_.poll_restored(end_received_)) {
    // The number is read back from its low half: a wrong guess only costs a retransmission.
    maker_.on_restored(restored->number);
    if (auto taken = take_frames(restored->frames, restored->number, true, ask, now); !taken) return taken;
  }
  return {};
}

// Acts on the results of an ACK or a timer.
void UdpCarrier::settle(TimePoint now) {
  SentEvents& events = flight_.events();
  const fec::LossReport report = flight_.settle(received_, end_received_, session_.outgoing(), now);
  if (!events.acked.empty()) {
    if (health_.on_acknowledged()) rate_.set_packet_bytes(flight_.full_packet(), now);
    health_.wait_anew(flight_.sent().packets_in_flight() > 0, now);
    opener_.keep_previous_keys(3 * rtt().probe_timeout(SentPackets::kMaxAckDelay));
    received_.set_round_trip(rtt().smoothed());
  }
  rate_.on_sample(events.sample, now);
  tell_line_rate();
  if (report.delivered || report.lost) fec_.on_report(report, rtt().smoothed(), now);
  if (!events.probes) return;
  maker_.owe_probes(events.probes);
  // Rather than only ask, the newest packet is sent once more.
  if (state() == State::up) flight_.repeat_newest(session_.outgoing(), now);
}

}  // namespace longhaul::link::udp
