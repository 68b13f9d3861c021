// SPDX-License-Identifier: Apache-2.0
// The parts of a UDP carrier without the carrier, for tests of each: a packet's frames go to `reader`,
// packets come from `maker`.
#pragma once
#include <catch2/catch.hpp>

#include "../start.h"
#include "proxy/link/udp/packet_reader.h"
#include "simulated_udp_pair.h"
#include "tests/proxy/link/numbers.h"

namespace longhaul::link::udp {

inline const UdpAddress kPartsPeer{boost::asio::ip::make_address("192.0.2.1"), 4433};

struct PacketParts : PacketReader::Carrier {
  void on_acknowledged(TimePoint) override { ++acknowledged; }
  void on_probed(TimePoint) override { ++probed; }

  CarrierId id{1};
  CreditPool pool{64 << 20, 100};
  RetainedBudget retained{64 << 20};
  Session session{{.side = Side::acceptor, .max_peer_streams = 100}, pool, retained, nullptr, kStart};
  PacketSealer sealer;
  PacketsInFlight flight{IpFamily::v4, 28, kStart};
  PeerAddress address{kPartsPeer};
  ReceivedPackets received{kStart};
  PacketFec fec;
  CarrierRate rate{{}, 1500, kStart};
  PathHealth health;
  PacketMaker maker{sealer, session.outgoing(), flight, received, fec, rate, health};
  PacketReader reader{*this, session, sealer, flight, address, fec, maker};
  AckAsk ask = AckAsk::none;
  int acknowledged = 0, probed = 0;

  explicit PacketParts(const PacketLimits& limits = {})
      : sealer(simulation::keys_from_seed(1).sent_by(Side::acceptor), Cipher::aes_128_gcm, limits) {
    maker.set_carrier(id);
    session.attach(id, kStart, {}, false);
    reader.set_carrier(id);
  }
  Result<void> read(const Buffer& payload) {
    return reader.read({.payload = payload, .number = 1_packet, .from = kPartsPeer, .arrived = kStart}, ask,
                       kStart);
  }
  // A packet of this side, sealed and in flight.
  void send() {
    Buffer out(kPacketHeaderBytes);
    write_filler(CarrierFrameType::probe, 2, out);
    REQUIRE(maker.make_from(out, kStart));
  }
  // The path answers, and the session sends here: what it says first waits to leave.
  void come_up() {
    health.begin_probing(kStart, {});
    health.on_acknowledged();
    session.prefer(id, kStart);
  }
  std::size_t make(TimePoint now, std::size_t limit = 1200) {
    Buffer out;
    if (!maker.make(limit, out, now)) return 0;
    return out.size();
  }
  static Buffer ack(PacketNumber first, PacketNumber last) {
    PacketAck ack;
    ack.ranges.push_back({first, last});
    Buffer out;
    write_packet_ack(ack, out);
    return out;
  }
};

}  // namespace longhaul::link::udp
