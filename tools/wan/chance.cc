// SPDX-License-Identifier: Apache-2.0
// Seeds the dice and walks the burst model.
#include "tools/wan/chance.h"

namespace longhaul::wan {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): neighbouring seeds give unrelated ones.
std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Chance::Chance(std::uint64_t seed, std::uint64_t effect) : engine_(scramble(scramble(seed) + effect)) {}

LinkChances::LinkChances(std::uint64_t seed)
    : loss(seed, 1),
      burst(seed, 2),
      jitter(seed, 3),
      reorder(seed, 4),
      duplicate(seed, 5),
      corrupt(seed, 6) {}

bool LinkChances::burst_lost(const std::optional<BurstLoss>& model) {
  const double lose = burst.draw();
  const double move = burst.draw();
  if (!model) {
    bad_state = false;
    return false;
  }
  const bool lost = lose < (bad_state ? model->loss_bad : model->loss_good);
  if (move < (bad_state ? model->leave : model->enter)) bad_state = !bad_state;
  return lost;
}

}  // namespace longhaul::wan
