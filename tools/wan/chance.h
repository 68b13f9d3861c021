// SPDX-License-Identifier: Apache-2.0
// The line's dice: seeded, the same on every machine, and one die per effect so that switching one effect on
// leaves the others' outcomes as they were. Leaves what an outcome means to link.h.
#pragma once
#include <cstdint>
#include <optional>
#include <random>

namespace longhaul::wan {

// Gilbert and Elliott: two states, each with its own loss; the state may change after every packet.
struct BurstLoss {
  double enter = 0;      // good to bad, per packet
  double leave = 1;      // bad to good, per packet: a bad spell lasts 1 / leave packets on average
  double loss_bad = 1;   // lost share in the bad state
  double loss_good = 0;  // and in the good one
};

class Chance {
 public:
  Chance(std::uint64_t seed, std::uint64_t effect);
  double draw() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }  // [0, 1)
  bool happens(double probability) { return draw() < probability; }

 private:
  // The engine's output is fixed by the C++ standard; the library's distributions are not, hence draw().
  std::mt19937_64 engine_;
};

struct LinkChances {
  explicit LinkChances(std::uint64_t seed);
  // Draws for every packet even without burst loss, so that all dice stay in step with the packets.
  bool burst_lost(const std::optional<BurstLoss>& model);

  Chance loss;
  Chance burst;
  Chance jitter;
  Chance reorder;
  Chance duplicate;
  Chance corrupt;
  bool bad_state = false;
};

}  // namespace longhaul::wan
