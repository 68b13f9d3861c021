// SPDX-License-Identifier: Apache-2.0
// 64 random bits from the system: a number that is unique to a run of the daemon.
#pragma once
#include <cstdint>
#include <random>

namespace longhaul {

inline std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace longhaul
