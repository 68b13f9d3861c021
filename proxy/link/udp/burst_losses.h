// SPDX-License-Identifier: Apache-2.0
// Whether the path drops what leaves in one burst: packets that were handed to the kernel together (UDP GSO)
// and lost together, or from some packet on to the end of the burst. Virtual interfaces and emulators with
// short queues do that. Pure; the carrier tells what it sent and lost.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>

#include "proxy/link/udp/packet.h"

namespace longhaul::link::udp {

// A full queue of the line and an outage look alike, so the shape of losses is only a reason to try: packets
// are sent one by one for a while, and together again. Only if the losses end and come back is the path known
// to drop bursts.
class BurstLosses {
 public:
  // `packets` numbers from `first` on left together; in ascending order. Bursts of less than kLeast say
  // nothing.
  void on_burst(PacketNumber first, unsigned packets);
  void on_lost(PacketNumber number);
  // The fate of all packets below is known.
  void settle(PacketNumber below);

  // Packets are to leave one by one, perhaps only to try it.
  bool one_by_one() const { return phase_ == Phase::one_by_one || phase_ == Phase::known; }
  bool drops_bursts() const { return phase_ == Phase::known; }

  static constexpr unsigned kLeast = 3;
  static constexpr unsigned kPhase = 64;      // bursts of which a phase is judged
  static constexpr unsigned kMany = 12;       // of them lost in that shape: worth a try
  static constexpr unsigned kBack = 6;        // come back
  static constexpr unsigned kFew = 3;         // ended
  static constexpr unsigned kPause = 1024;    // bursts until the next try, twice as many after each in vain
  static constexpr std::size_t kMost = 4096;  // bursts in flight; older ones are not judged

 private:
  enum class Phase : std::uint8_t { watching, one_by_one, together_again, known };
  struct Burst {
    PacketNumber first;
    unsigned packets;
    unsigned lost = 0;
    PacketNumber first_lost{};
  };
  void judge(const Burst& burst);
  void begin(Phase phase);
  void give_up();

  Phase phase_ = Phase::watching;
  std::deque<Burst> bursts_;
  unsigned judged_ = 0, shaped_ = 0, scattered_ = 0;  // in this phase
  unsigned pause_ = 0, next_pause_ = kPause;
};

}  // namespace longhaul::link::udp
