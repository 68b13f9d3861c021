// SPDX-License-Identifier: Apache-2.0
// Selects the packets to be sent next, and together: a frame that validates an address, a probe of the path
// or of its MTU, or as many packets of one size as the rate allows. packet_maker.h makes each packet.
#pragma once
#include "proxy/link/udp/datagram_batch.h"
#include "proxy/link/udp/packet_maker.h"
#include "proxy/link/udp/peer_address.h"

namespace longhaul::link::udp {

class BatchMaker {
 public:
  // All references outlive this object.
  BatchMaker(PacketMaker& maker, PacketsInFlight& flight, PeerAddress& address, PathHealth& health)
      : maker_(maker), flight_(flight), address_(address), health_(health) {}

  // Fills the empty `batch`, which stays empty if nothing may be sent now. The peer's address must be known.
  void make(DatagramBatch& batch, TimePoint now);

 private:
  void make_path_probe(DatagramBatch& batch, TimePoint now);
  void make_packets(DatagramBatch& batch, TimePoint now);

  PacketMaker& maker_;
  PacketsInFlight& flight_;
  PeerAddress& address_;
  PathHealth& health_;
  bool small_probe_sent_ = false;  // the large probe that belongs to it follows
};

}  // namespace longhaul::link::udp
