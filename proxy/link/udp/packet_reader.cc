// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_reader.h"

#include <utility>

namespace longhaul::link::udp {
namespace {

constexpr std::uint64_t kWorkPerCarrierFrame = 200;

}  // namespace

Result<void> PacketReader::take_frames(Bytes payload, PacketNumber number, bool restored, AckAsk& ask,
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

Result<void> PacketReader::take_carrier_frame(CarrierFrameType type, Bytes body, Bytes behind,
                                              PacketNumber number, AckAsk& ask, TimePoint now) {
  count_work(kWorkPerCarrierFrame);
  switch (type) {
    case CarrierFrameType::packet_ack: {
      auto ack = parse_packet_ack(body);
      if (!ack) return ack.error();
      if (auto taken = flight_.on_ack(*ack, arrived_, now); !taken) return taken;
      sealer_.on_acknowledged(ack->largest());
      carrier_.on_acknowledged(now);
      return {};
    }
    case CarrierFrameType::probe:
      ask = AckAsk::at_once;
      carrier_.on_probed(now);
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
      flight_.set_head_bytes(head_bytes(address_.current()));
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

Result<void> PacketReader::read_restored(PacketNumber end_received, AckAsk& ask, TimePoint now) {
  while (auto restored = fec_.poll_restored(end_received)) {
    // The number is read back from its low half: a wrong guess only costs a retransmission.
    maker_.on_restored(restored->number);
    if (auto taken = take_frames(restored->frames, restored->number, true, ask, now); !taken) return taken;
  }
  return {};
}

}  // namespace longhaul::link::udp
