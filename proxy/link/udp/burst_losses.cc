// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/burst_losses.h"

#include <algorithm>

namespace longhaul::link::udp {

void BurstLosses::on_burst(PacketNumber first, unsigned packets) {
  if (packets < kLeast || phase_ == Phase::known) return;
  if (bursts_.size() == kMost) bursts_.pop_front();
  bursts_.push_back({first, packets});
}

void BurstLosses::on_lost(PacketNumber number) {
  auto after = std::upper_bound(bursts_.begin(), bursts_.end(), number,
                                [](PacketNumber wanted, const Burst& burst) { return wanted < burst.first; });
  if (after == bursts_.begin()) return;
  Burst& burst = *--after;
  if (number >= burst.first + burst.packets) return;
  burst.first_lost = burst.lost == 0 ? number : std::min(burst.first_lost, number);
  ++burst.lost;
}

void BurstLosses::settle(PacketNumber below) {
  while (!bursts_.empty() && bursts_.front().first + bursts_.front().packets <= below) {
    const Burst burst = bursts_.front();
    bursts_.pop_front();
    judge(burst);
  }
}

void BurstLosses::judge(const Burst& burst) {
  if (pause_ > 0) {
    --pause_;
    return;
  }
  ++judged_;
  if (burst.lost > 0) {
    // A single lost packet may be any packet.
    const bool is_tail = burst.lost >= 2 && burst.first + burst.packets - burst.first_lost == burst.lost;
    is_tail ? ++shaped_ : ++scattered_;
  }
  const bool is_over = judged_ == kPhase;
  switch (phase_) {
    case Phase::watching:
      if (shaped_ >= kMany && shaped_ >= 3 * scattered_) return begin(Phase::one_by_one);
      if (is_over) begin(Phase::watching);
      return;
    case Phase::one_by_one:
      if (shaped_ > kFew) return give_up();
      if (is_over) begin(Phase::together_again);
      return;
    case Phase::together_again:
      if (shaped_ >= kBack) return begin(Phase::known);
      if (is_over) give_up();
      return;
    case Phase::known:
      return;
  }
}

void BurstLosses::give_up() {
  begin(Phase::watching);
  pause_ = next_pause_;
  next_pause_ = std::min(2 * next_pause_, 1u << 20);
}

void BurstLosses::begin(Phase phase) {
  // Packets in flight were sent as in the previous phase.
  if (phase != phase_) bursts_.clear();
  phase_ = phase;
  judged_ = shaped_ = scattered_ = 0;
}

}  // namespace longhaul::link::udp
