// SPDX-License-Identifier: Apache-2.0
// Which packets leave next, and together: an answer about addresses, a probe of the path or of its largest
// size, or as many packets of one size as the rate allows. packet_maker.h makes each packet.
#pragma once
#include "proxy/link/udp/datagram_batch.h"
#include "proxy/link/udp/packet_maker.h"
#include "proxy/link/udp/peer_address.h"

namespace longhaul::link::udp {

class BatchMaker {
 public:
  // All outlive this object.
  BatchMaker(PacketMaker& maker, PacketsInFlight& flight, PeerAddress& address, PathHealth& health)
      : maker_(maker), flight_(flight), address_(address), health_(health) {}

  // Fills `batch`, which is empty; it stays empty if nothing may be sent now. The peer's address is known.
  void make(DatagramBatch& batch, TimePoint now);

 private:
  void make_path_probe(DatagramBatch& batch, TimePoint now);
  void make_packets(DatagramBatch& batch, TimePoint now);

  PacketMaker& maker_;
  PacketsInFlight& flight_;
  PeerAddress& address_;
  PathHealth& health_;
  bool small_probe_sent_ = false;  // the large one that belongs to it is to follow
};

}  // namespace longhaul::link::udp
