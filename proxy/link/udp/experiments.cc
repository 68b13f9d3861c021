// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/experiments.h"

namespace longhaul::link::udp {

const char* name_of(Phase phase) {
  constexpr std::array<const char*, 12> names{"train", "ramp",   "drain",   "cruise", "up",    "down",
                                              "test",  "follow", "compete", "look",   "burst", "rest"};
  return names[static_cast<std::size_t>(phase)];
}

bool is_settled(Phase phase) {
  return phase == Phase::cruise || phase == Phase::up || phase == Phase::down || phase == Phase::burst ||
         phase == Phase::rest;
}

bool measures_loss(Phase phase) {
  return phase != Phase::drain && phase != Phase::ramp && phase != Phase::burst && phase != Phase::follow;
}

LossByRate::Level level_of(Phase phase) {
  using Level = LossByRate::Level;
  if (phase == Phase::up || phase == Phase::ramp) return Level::high;
  return phase == Phase::test ? Level::low : Level::normal;
}

void Experiments::begin(const Plan& plan, double line, TimePoint now) {
  phase_ = plan.phase;
  gain_ = plan.gain;
  ends_ = plan.time == Duration::max() ? TimePoint::max() : now + plan.time;
  ++number_;
  past_[number_ % past_.size()] = {number_, phase_, gain_ * line};
}

const Experiments::Past* Experiments::find(std::uint16_t number) const {
  const Past& past = past_[number % past_.size()];
  return past.number == number ? &past : nullptr;
}

}  // namespace longhaul::link::udp
