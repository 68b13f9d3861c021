// SPDX-License-Identifier: Apache-2.0
// Detects paths that drop packets sent in one burst: packets that were given to the kernel together (UDP GSO)
// and lost together, or from some packet to the end of the burst. Virtual interfaces and emulators with short
// queues do that. Pure; the carrier reports what it sent and lost.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>

#include "proxy/link/udp/packet.h"

namespace longhaul::link::udp {

// A full queue of the line and an outage look similar, so the pattern of losses is only a reason for a test:
// packets are sent one by one for a while, and then together again. Only if the losses end and return is the
// path known to drop bursts.
class BurstLosses {
 public:
  // `packets` numbers from `first` on were sent together, in ascending order. Bursts of less than kLeast are
  // ignored.
  void on_burst(PacketNumber first, unsigned packets);
  void on_lost(PacketNumber number);
  // The fate of all packets below this number is known.
  void settle(PacketNumber below);

  // Whether packets should be sent one by one, perhaps only as a test.
  bool one_by_one() const { return phase_ == Phase::one_by_one || phase_ == Phase::known; }
  bool drops_bursts() const { return phase_ == Phase::known; }

  static constexpr unsigned kLeast = 3;
  static constexpr unsigned kPhase = 64;      // bursts per phase
  static constexpr unsigned kMany = 12;       // of them lost in that pattern: reason for a test
  static constexpr unsigned kBack = 6;        // losses have returned
  static constexpr unsigned kFew = 3;         // losses have ended
  static constexpr unsigned kPause = 1024;    // bursts until the next test, doubled after each failed one
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
