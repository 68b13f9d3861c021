// SPDX-License-Identifier: Apache-2.0
// A carrier and its session against a peer that has the right keys and keeps no rule: whatever the payloads
// of its packets are, nothing crashes, no datagram is larger than the path takes, and time goes on.
#include <cstdlib>

#include "proxy/link/udp/udp_carrier.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void send_what_is_due(UdpCarrier& carrier, TimePoint now) {
  DatagramBatch batch;
  // More batches at one moment would be a carrier that never stops.
  for (int i = 0; carrier.transmit(batch, now); ++i) {
    require(i < 10'000);
    require(batch.segment_bytes > 0 && batch.segment_bytes <= 9000 && batch.bytes.size() <= 65'000);
  }
}

}  // namespace

// Each packet of the peer: a byte of time that passes before, two of length, the payload.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  TimePoint now{1h};
  CreditPool pool(4 << 20, 64);
  RetainedBudget retained(4 << 20);
  Session session({.side = Side::acceptor, .max_peer_streams = 64}, pool, retained, nullptr, now);
  CarrierId names = 0;
  CarrierKeys keys = keys_from_exporter(Buffer(kExportedBytes, std::byte{7}));
  UdpCarrier carrier({.side = Side::acceptor, .keys = keys, .new_carrier = [&] { return ++names; }}, session,
                     now);
  PacketSealer peer(keys.sent_by(Side::dialler), Cipher::aes_128_gcm);
  UdpAddress address(boost::asio::ip::make_address("10.0.0.1"), 7);

  ByteReader in(std::as_bytes(std::span(data, size)));
  while (auto pause = in.u8()) {
    auto length = in.fixed16();
    if (!length) break;
    Bytes payload = *in.bytes(std::min<std::size_t>({*length, in.remaining(), 1500}));
    now += *pause * 1ms;
    session.on_timeout(now);
    carrier.on_timeout(now);
    if (!payload.empty()) {
      Buffer packet(kPacketHeaderBytes);
      append(packet, payload);
      packet.resize(packet.size() + kPacketTagBytes);
      require(peer.seal(packet).has_value());
      // Another address now and then: the peer may have moved.
      UdpAddress from(address.address(), static_cast<unsigned short>(7 + *pause / 200));
      bool taken = carrier.receive(packet, from, now).has_value();
      if (carrier.state() == UdpCarrier::State::up) carrier.prefer(now);
      send_what_is_due(carrier, now);
      if (!taken) return 0;
    }
    while (auto event = session.poll_event())
      if (event->kind == Event::Kind::stream && event->stream_event == EventKind::opened)
        if (Stream* stream = session.find(event->stream)) {
          stream->give_answer({});
          Buffer bytes(std::min<std::size_t>(stream->may_write(), 5000));
          stream->write(bytes);
        }
    send_what_is_due(carrier, now);
  }
  // Time without a word: it gives up what waits and stays quiet.
  for (int i = 0; i < 200; ++i) {
    auto next = carrier.next_timeout();
    if (!next) break;
    now = std::max(*next, now + 1us);
    session.on_timeout(now);
    carrier.on_timeout(now);
    send_what_is_due(carrier, now);
  }
  return 0;
}
