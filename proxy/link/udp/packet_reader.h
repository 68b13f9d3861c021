// SPDX-License-Identifier: Apache-2.0
// Processes the frames of a decrypted packet: passes the session's frames on; the carrier's own frames
// acknowledge, validate an address, or restore lost packets. udp_carrier.h decrypts packets and acknowledges
// them.
#pragma once
#include "proxy/link/session.h"
#include "proxy/link/udp/carrier_frames.h"
#include "proxy/link/udp/packet_maker.h"
#include "proxy/link/udp/peer_address.h"

namespace longhaul::link::udp {

class PacketReader {
 public:
  class Carrier {
   public:
    virtual ~Carrier() = default;
    // PacketsInFlight::events() has new events.
    virtual void on_acknowledged(TimePoint now) = 0;
    virtual void on_probed(TimePoint now) = 0;
  };

  // All references outlive this object.
  PacketReader(Carrier& carrier, Session& session, PacketSealer& sealer, PacketsInFlight& flight,
               PeerAddress& address, PacketFec& fec, PacketMaker& maker)
      : carrier_(carrier),
        session_(session),
        sealer_(sealer),
        flight_(flight),
        address_(address),
        fec_(fec),
        maker_(maker) {}

  // The session's id of the carrier.
  void set_carrier(CarrierId id) { id_ = id; }

  struct Packet {
    Bytes payload;  // decrypted
    PacketNumber number{};
    UdpAddress from{};
    TimePoint arrived{};
  };
  // Raises `ask` to the urgency of the packet's acknowledgement. An error means that the peer broke the
  // protocol.
  Result<void> read(const Packet& packet, AckAsk& ask, TimePoint now) {
    came_from_ = packet.from;
    arrived_ = packet.arrived;
    return take_frames(packet.payload, packet.number, false, ask, now);
  }
  // Reads lost packets that error correction has restored. `end_received`: one more than the highest number
  // received.
  Result<void> read_restored(PacketNumber end_received, AckAsk& ask, TimePoint now);

 private:
  Result<void> take_frames(Bytes payload, PacketNumber number, bool restored, AckAsk& ask, TimePoint now);
  Result<void> take_carrier_frame(CarrierFrameType type, Bytes body, Bytes behind, PacketNumber number,
                                  AckAsk& ask, TimePoint now);

  Carrier& carrier_;
  Session& session_;
  PacketSealer& sealer_;
  PacketsInFlight& flight_;
  PeerAddress& address_;
  PacketFec& fec_;
  PacketMaker& maker_;
  CarrierId id_;
  UdpAddress came_from_;  // source of the packet that is being read
  TimePoint arrived_{};
};

}  // namespace longhaul::link::udp
