// SPDX-License-Identifier: Apache-2.0
// The results of an ACK or a timeout: the fates of sent packets, and a sample for the RateLaw.
#pragma once
#include <cstdint>
#include <vector>

#include "proxy/link/udp/outgoing_packet.h"
#include "proxy/link/udp/packet_number.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

struct PacketFate {
  PacketNumber number;
  std::uint32_t content = 0;
  PacketKind kind = PacketKind::data;
};

// Reused by the caller, so that no ACK needs an allocation.
struct SentEvents {
  // Each handle (except those of ack_only packets) is returned once, in one of these two.
  std::vector<PacketFate> acked;
  std::vector<PacketFate> lost;
  // Arrived although declared lost. The handle was returned with the loss: it is valid only if its owner kept
  // it.
  std::vector<PacketFate> spurious;
  std::vector<EpochTally> epochs;  // storage of sample.epochs
  RateSample sample;
  unsigned probes = 0;  // packets to be sent now, beyond the window, to request an acknowledgement

  void begin(TimePoint now) {
    acked.clear();
    lost.clear();
    spurious.clear();
    epochs.clear();
    probes = 0;
    sample = {};
    sample.now = now;
  }
  // Adds to the tally of the epoch.
  void tally(const EpochTally& more) {
    for (EpochTally& known : epochs) {
      if (known.epoch != more.epoch) continue;
      known.acked_bytes += more.acked_bytes;
      known.lost_bytes += more.lost_bytes;
      known.loss_runs += more.loss_runs;
      return;
    }
    epochs.push_back(more);
  }
};

}  // namespace longhaul::link::udp
